#pragma once
// A SaveStage is the part of a checkpoint that a rank is at, on a thread of its own: disks take
// their time. Thread contract: one thread.

#include <chrono>
#include <functional>
#include <future>
#include <string>

namespace strata {

class SaveStage {
 public:
  // What `work` throws is its failure. The one before has ended.
  void start(std::function<void()> work);
  bool is_busy() const;
  // Returns early when it is done.
  void wait_for(std::chrono::milliseconds patience) const;
  // Waits until it is done. Returns why it failed; empty: it did not, or none was started.
  const std::string& failure() const;

 private:
  std::shared_future<std::string> work_;  // destroyed: waits
};

}  // namespace strata
