#include <condition_variable>
#include <mutex>

#include "strata/core/error.hpp"
#include "strata/io/io_engine.hpp"

namespace strata {
namespace {

class Waiter : public IoCompletion {
 public:
  void complete(const IoResult& result) noexcept override {
    // Notifies under the lock: the waiter is gone as soon as it is released.
    const std::lock_guard lock(mutex_);
    result_ = result;
    done_ = true;
    changed_.notify_one();
  }

  IoResult wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
    return result_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  IoResult result_;
  bool done_ = false;
};

}  // namespace

void transfer(IoEngine& engine, const IoRequest& request) {
  Waiter waiter;
  IoRequest awaited = request;
  awaited.completion = &waiter;
  engine.submit({&awaited, 1});
  const IoResult result = waiter.wait();
  if (!result.ok()) throw Error(result.message);
}

}  // namespace strata
