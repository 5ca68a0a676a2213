#pragma once
// An IoEngine around a real one that holds write-backs: from one of them on, three are kept, as on
// a drive that is busy, and the next fails. What is kept ends only when it is cancelled.

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "support/forwarding_engine.hpp"

namespace strata::testing {

class HoldingEngine : public ForwardingEngine {
 public:
  HoldingEngine(std::unique_ptr<IoEngine> real, std::uint64_t from_write)
      : ForwardingEngine(std::move(real)), from_write_(from_write) {}

  std::size_t num_cancelled() const { return cancelled_.size(); }

  void submit(std::span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) submit(request);
  }
  std::size_t cancel(const IoCompletion& completion) override {
    std::lock_guard lock(mutex_);
    const auto held = std::ranges::find(held_, &completion);
    if (held == held_.end()) return 0;
    end(**held, {0, ECANCELED, "given up"});
    held_.erase(held);
    return 1;
  }

 private:
  void submit(const IoRequest& request) {
    if (request.priority != IoPriority::write_back) return real().submit({&request, 1});
    std::lock_guard lock(mutex_);
    const std::uint64_t write = writes_++;
    if (write < from_write_ || write > from_write_ + 3) return real().submit({&request, 1});
    if (write < from_write_ + 3)
      held_.push_back(request.completion);
    else
      fail(*request.completion);
  }
  // As engines do, on a thread of its own.
  void end(IoCompletion& completion, IoResult result) {
    cancelled_.emplace_back(
        [&completion, result = std::move(result)] { completion.complete(result); });
  }
  void fail(IoCompletion& completion) {
    failed_ = std::jthread([&completion] { completion.complete({0, EIO, "a write has failed"}); });
  }

  const std::uint64_t from_write_;
  std::mutex mutex_;
  std::uint64_t writes_ = 0;
  std::vector<IoCompletion*> held_;
  std::jthread failed_;
  std::vector<std::jthread> cancelled_;
};

}  // namespace strata::testing
