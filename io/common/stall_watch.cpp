#include "io/common/stall_watch.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace strata {
namespace {

constexpr std::int64_t ticks_per_stall = 8;

}  // namespace

StallWatch::StallWatch(Tell tell, double stall_seconds, Clock clock)
    : tell_(std::move(tell)),
      stall_ns_(static_cast<std::int64_t>(stall_seconds * 1e9)),
      tick_ns_(stall_ns_ / ticks_per_stall),
      clock_(std::move(clock)) {
  if (tell_) thread_ = std::thread([this] { watch(); });
}

StallWatch::~StallWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StallWatch::add(RequestBoard& board) {
  const std::lock_guard lock(mutex_);
  boards_.push_back(&board);
}

void StallWatch::watch() {
  std::vector<StallCheck> stalled;
  std::unique_lock lock(mutex_);
  std::int64_t wake_ns = clock_();
  while (!stopped_) {
    const std::int64_t now = clock_();
    if (now - wake_ns > tick_ns_) forget_pause(now - wake_ns, now);
    stalled.clear();
    wake_ns = std::min(look(now, stalled), now + tick_ns_);
    lock.unlock();
    for (const StallCheck& one : stalled) tell_(*one.silent_seconds, one.in_flight);
    lock.lock();
    const auto pause = std::chrono::nanoseconds(std::max<std::int64_t>(wake_ns - clock_(), 0));
    changed_.wait_for(lock, pause, [&] { return stopped_; });
  }
}

void StallWatch::forget_pause(std::int64_t pause_ns, std::int64_t now_ns) {
  for (RequestBoard* board : boards_) board->forget_pause(pause_ns, now_ns);
}

std::int64_t StallWatch::look(std::int64_t now_ns, std::vector<StallCheck>& stalled) {
  std::int64_t next = now_ns + stall_ns_;
  for (RequestBoard* board : boards_) {
    StallCheck check = board->check_stall(now_ns, stall_ns_);
    next = std::min(next, check.next_ns);
    if (check.silent_seconds) stalled.push_back(std::move(check));
  }
  return next;
}

}  // namespace strata
