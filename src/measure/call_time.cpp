#include "call_time.hpp"

#include <algorithm>
#include <cmath>

#include "strata/core/clock.hpp"
#include "strata/measure/samples.hpp"

namespace strata {
namespace {

constexpr double sample_seconds = 2e-3;
constexpr double calls_max = 10'000;

double timed(const std::function<void()>& call, int num_calls) {
  const std::int64_t begin = now_ns();
  for (int i = 0; i < num_calls; ++i) call();
  return std::max(seconds(now_ns() - begin), 1e-9) / num_calls;
}

}  // namespace

double call_seconds(const std::function<void()>& call, int repeats) {
  call();
  const double first = timed(call, 1);
  const int num_calls = static_cast<int>(std::clamp(sample_seconds / first, 1.0, calls_max));
  Samples samples;
  for (int i = 0; i < repeats; ++i) samples.values.push_back(timed(call, num_calls));
  return samples.median();
}

}  // namespace strata
