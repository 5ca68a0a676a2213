#include "io/common/stall_watch.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "strata/core/clock.hpp"

namespace strata {

StallWatch::StallWatch(Tell tell, double stall_seconds)
    : tell_(std::move(tell)), stall_ns_(static_cast<std::int64_t>(stall_seconds * 1e9)) {
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
  while (!stopped_) {
    stalled.clear();
    const std::int64_t next_ns = look(stalled);
    lock.unlock();
    for (const StallCheck& one : stalled) tell_(*one.stalled_seconds, one.in_flight);
    lock.lock();
    const auto pause = std::chrono::nanoseconds(std::max<std::int64_t>(next_ns - now_ns(), 0));
    changed_.wait_for(lock, pause, [&] { return stopped_; });
  }
}

std::int64_t StallWatch::look(std::vector<StallCheck>& stalled) {
  const std::int64_t now = now_ns();
  std::int64_t next = now + stall_ns_;
  for (RequestBoard* board : boards_) {
    StallCheck check = board->check_stall(now, stall_ns_);
    next = std::min(next, check.next_ns);
    if (check.stalled_seconds) stalled.push_back(std::move(check));
  }
  return next;
}

}  // namespace strata
