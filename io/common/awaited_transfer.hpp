#pragma once
// An AwaitedTransfer is the completion of one transfer after another whose starter waits.
//
// Thread contract: complete() from any thread, the rest from one.

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "strata/io/io_engine.hpp"

namespace strata {

class AwaitedTransfer : public IoCompletion {
 public:
  void complete(const IoResult& result) noexcept override {
    // Notifies under the lock: this may be gone as soon as it is released.
    const std::lock_guard lock(mutex_);
    result_ = result;
    changed_.notify_one();
  }

  // Of the transfer that was started last; once.
  IoResult wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return result_.has_value(); });
    return *std::exchange(result_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<IoResult> result_;
};

}  // namespace strata
