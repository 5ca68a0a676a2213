#pragma once
// Tests of what happens within a time.

namespace strata {

// A time (or steps that fill one) that a test can wait for is too short for a thread that is not
// let run meanwhile. Makes attempt(much), and again with ten times as much where somebody was late
// who should not have been, up to a thousand times as much.
template <typename Attempt, typename IsLate>
auto unhurried(double much, const Attempt& attempt, const IsLate& is_late) {
  auto outcome = attempt(much);
  for (int more = 0; more < 3 && is_late(outcome); ++more) outcome = attempt(much *= 10);
  return outcome;
}

}  // namespace strata
