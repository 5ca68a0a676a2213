#pragma once
// A StallWatch tells IoOptions::on_stall about transfers that the kernel keeps. One thread looks at
// all boards of an engine, when the oldest piece would be due; without on_stall there is no thread.
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

namespace strata {

class StallWatch {
 public:
  using Tell = std::function<void(double seconds, const std::string& in_flight)>;

  StallWatch(Tell tell, double stall_seconds);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  void add(RequestBoard& board);

 private:
  void watch();
  // Returns when to look again.
  std::int64_t look(std::vector<StallCheck>& stalled);

  const Tell tell_;
  const std::int64_t stall_ns_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RequestBoard*> boards_;  // guarded by mutex_
  bool stopped_ = false;               // guarded by mutex_
  std::thread thread_;
};

}  // namespace strata
