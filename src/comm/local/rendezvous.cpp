#include "rendezvous.hpp"

#include <fmt/format.h>
#include <hwy/cache_control.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr double seconds_max = 1e9;  // what a clock can count in nanoseconds, and more than a job

// Tries before a rank blocks, some five microseconds: ranks that run side by side meet in a sixth
// of the time that waking takes, and a processor that others want is not held for long. Where ranks
// share processors, the one that is waited for may need this one's.
constexpr int spins_side_by_side = 200;

int spins_of(int world) {
  return world <= static_cast<int>(std::thread::hardware_concurrency()) ? spins_side_by_side : 0;
}

template <typename Condition>
bool spin_until(const Condition& condition, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (condition()) return true;
    hwy::Pause();
  }
  return condition();
}

std::chrono::steady_clock::duration clock_seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(std::clamp(seconds, 0.0, seconds_max)));
}

std::string seconds_text(std::chrono::steady_clock::duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 2 : 0);
}

std::string describe(const CollectiveCall& call) {
  return describe(call.kind, call.source.dtype, call.source.count(), call.from, call.to);
}

bool agree(const CollectiveCall& left, const CollectiveCall& right) {
  return left.kind == right.kind && left.source.dtype == right.source.dtype &&
         left.source.count() == right.source.count() && left.from == right.from &&
         left.to == right.to;
}

}  // namespace

Rendezvous::Rendezvous(int world, const CommOptions& options, JobFailure& job)
    : late_(clock_seconds(options.late_s)),
      timeout_(clock_seconds(options.timeout_s)),
      on_late_(options.on_late),
      spins_(spins_of(world)),
      job_(job),
      calls_(static_cast<std::size_t>(world)),
      here_(static_cast<std::size_t>(world)),
      withdrawn_(static_cast<std::size_t>(world)) {
  job_.add_line(changed_);
}

void Rendezvous::enter(int rank, const CollectiveCall& call) {
  Lock lock = job_.lock();
  if (job_.has_failed()) throw_failure(rank, call.kind, lock);
  const std::int64_t before = collectives_begun_.load();
  calls_[static_cast<std::size_t>(rank)] = call;
  here_[static_cast<std::size_t>(rank)] = true;
  if (++num_here_ == world())
    begin_if_calls_match(lock);
  else
    wait_for_all(rank, before, lock);
  if (collectives_begun_.load() == before) throw_failure(rank, call.kind, lock);
}

// By the last rank to come, so every rank sees the same verdict.
void Rendezvous::begin_if_calls_match(const Lock& lock) {
  const auto odd = std::ranges::find_if(
      calls_, [&](const CollectiveCall& call) { return !agree(call, calls_.front()); });
  if (odd != calls_.end()) {
    return job_.fail(lock,
                     fmt::format("rank {} called {} where rank 0 called {}", odd - calls_.begin(),
                                 describe(*odd), describe(calls_.front())));
  }
  here_.assign(here_.size(), false);
  num_here_ = 0;
  is_late_told_ = false;
  collectives_begun_.fetch_add(1);
  changed_.notify_all();
}

bool Rendezvous::is_over(std::int64_t before) const {
  return collectives_begun_.load() != before || job_.has_failed();
}

void Rendezvous::wait_for_all(int rank, std::int64_t before, Lock& lock) {
  if (const auto left = std::ranges::find(withdrawn_, true); left != withdrawn_.end()) {
    return job_.fail(lock, fmt::format("rank {} has left, rank {} waits for it in {}",
                                       left - withdrawn_.begin(), rank, describe_call(rank)));
  }
  const Clock::time_point start = Clock::now();
  lock.unlock();
  spin_until([&] { return is_over(before); }, spins_);
  lock.lock();
  while (!is_over(before)) block(rank, start, lock);
}

// Until something changes, or the absent are to be told of.
void Rendezvous::block(int rank, Clock::time_point start, Lock& lock) {
  const Clock::duration waited = Clock::now() - start;
  const bool can_tell = on_late_ && !is_late_told_;
  if (waited >= timeout_) {
    return job_.fail(lock, fmt::format("{} did not come to {} within {}", absent_ranks(),
                                       describe_call(rank), seconds_text(timeout_)));
  }
  if (can_tell && waited >= late_) return tell_late(rank, waited, lock);
  changed_.wait_until(lock, start + (can_tell ? std::min(late_, timeout_) : timeout_));
}

// A watchdog that throws ends the program: this rank's memory may be in use, so it cannot leave.
void Rendezvous::tell_late(int rank, Clock::duration waited, Lock& lock) noexcept {
  const std::string report = fmt::format("{} {} not come to {} for {}", absent_ranks(),
                                         num_here_ + 1 == world() ? "has" : "have",
                                         describe_call(rank), seconds_text(waited));
  is_late_told_ = true;
  lock.unlock();
  on_late_(report);
  lock.lock();
}

void Rendezvous::finish_part() {
  Lock lock = job_.lock();
  const std::int64_t before = parts_finished_.load();
  if (++num_finished_ == world()) {
    num_finished_ = 0;
    parts_finished_.fetch_add(1);
    return changed_.notify_all();
  }
  const auto is_finished = [&] { return parts_finished_.load() != before; };
  lock.unlock();
  if (spin_until(is_finished, spins_)) return;
  lock.lock();
  changed_.wait(lock, is_finished);
}

void Rendezvous::withdraw(int rank) {
  const Lock lock = job_.lock();
  withdrawn_[static_cast<std::size_t>(rank)] = true;
  const auto waiting = std::ranges::find(here_, true);
  if (waiting == here_.end()) return;
  const auto who = static_cast<int>(waiting - here_.begin());
  job_.fail(lock, fmt::format("rank {} left while rank {} waited for it in {}", rank, who,
                              describe_call(who)));
}

std::string Rendezvous::absent_ranks() const {
  std::string names;
  for (std::size_t rank = 0; rank < here_.size(); ++rank) {
    if (!here_[rank]) names += fmt::format("{}rank {}", names.empty() ? "" : ", ", rank);
  }
  return names;
}

std::string Rendezvous::describe_call(int rank) const {
  return describe(calls_[static_cast<std::size_t>(rank)]);
}

void Rendezvous::throw_failure(int rank, Collective kind, const Lock& lock) const {
  throw Error(fmt::format("{} on rank {} of {} failed: {}", collective_name(kind), rank, world(),
                          job_.reason(lock)));
}

}  // namespace strata
