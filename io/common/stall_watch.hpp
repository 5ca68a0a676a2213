#pragma once
// A StallWatch tells IoOptions::on_stall about transfers that the kernel keeps. One thread looks at
// all boards of an engine, when the oldest piece would be due and several times until then; without
// on_stall there is no thread. A thread that wakes much too late tells that the process was stopped
// meanwhile (SIGSTOP, a frozen cgroup, a paused virtual machine): that time counts for nobody.
//
// Thread contract: add() from any thread. The boards outlive the watch.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "io/common/request_board.hpp"
#include "strata/core/clock.hpp"

namespace strata {

class StallWatch {
 public:
  using Tell = std::function<void(double silent_seconds, const std::string& in_flight)>;
  using Clock = std::function<std::int64_t()>;  // nanoseconds

  StallWatch(Tell tell, double stall_seconds, Clock clock = &now_ns);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  void add(RequestBoard& board);

 private:
  void watch();
  void forget_pause(std::int64_t pause_ns, std::int64_t now_ns);
  // Returns when to look again.
  std::int64_t look(std::int64_t now_ns, std::vector<StallCheck>& stalled);

  const Tell tell_;
  const std::int64_t stall_ns_;
  const std::int64_t tick_ns_;  // sleeps at most so long, and may be so late
  const Clock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RequestBoard*> boards_;  // guarded by mutex_
  bool stopped_ = false;               // guarded by mutex_
  std::thread thread_;
};

}  // namespace strata
