#pragma once
// What the lines of a job in one process share: the lock over their state, and the first reason to
// fail, which ends the waits of all of them. Thread contract: any thread; add_line() before others
// know of the job.

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

namespace strata {

class JobFailure {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // What the waits of a line block on.
  void add_line(std::condition_variable& changed) { lines_.push_back(&changed); }

  Lock lock() { return Lock(mutex_); }
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  // The caller holds lock(). Keeps the first reason.
  void fail(const Lock& lock, std::string reason);
  const std::string& reason(const Lock&) const { return reason_; }

 private:
  std::mutex mutex_;
  std::vector<std::condition_variable*> lines_;  // constant once the job runs
  std::string reason_;                           // guarded by mutex_
  std::atomic<bool> has_failed_ = false;
};

}  // namespace strata
