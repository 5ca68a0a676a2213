#pragma once
// An IoEngine around a real one with a gate before one read of optimizer state: it counts what is
// submitted, keeps that read back, and passes it on when the gate is opened.

#include <array>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "support/forwarding_engine.hpp"

namespace strata::testing {

class GateEngine : public ForwardingEngine {
 public:
  // What the executor has submitted: reads of weights and activations, reads and writes of state.
  struct Submitted {
    std::uint64_t step_reads = 0, state_reads = 0, writes = 0;
    bool operator==(const Submitted&) const = default;
  };

  // Keeps back the `kept`th read of state, counted from 0.
  GateEngine(std::unique_ptr<IoEngine> real, std::uint64_t kept)
      : ForwardingEngine(std::move(real)), kept_read_(kept) {}

  void submit(std::span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) submit(request);
  }

  // Waits, but not for ever, until as much has been submitted with the gate closed; then opens it.
  // Returns what had been submitted by then.
  Submitted open_after(const Submitted& wanted) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      return kept_ && submitted_.step_reads >= wanted.step_reads &&
             submitted_.state_reads >= wanted.state_reads && submitted_.writes >= wanted.writes;
    });
    const Submitted then = submitted_;
    is_open_ = true;
    if (kept_) real().submit({&*kept_, 1});
    return then;
  }

 private:
  void submit(const IoRequest& request) {
    {
      const std::lock_guard lock(mutex_);
      const std::uint64_t number = count(request)++;
      changed_.notify_all();
      if (&count(request) == &submitted_.state_reads && number == kept_read_ && !is_open_) {
        kept_ = request;
        return;
      }
    }
    real().submit({&request, 1});
  }
  // What is waited for, outside of steps, goes to `uncounted_`.
  std::uint64_t& count(const IoRequest& request) {
    if (request.op == IoOp::write)
      return request.priority == IoPriority::write_back ? submitted_.writes : uncounted_;
    return request.priority == IoPriority::prefetch ? submitted_.state_reads
                                                    : submitted_.step_reads;
  }

  const std::uint64_t kept_read_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  Submitted submitted_;
  std::uint64_t uncounted_ = 0;
  std::optional<IoRequest> kept_;
  bool is_open_ = false;
};

}  // namespace strata::testing
