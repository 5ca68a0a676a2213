#pragma once
// What the walkers that run ops on the caller's thread share. A failure is kept, and thrown again
// by every later call, once nothing is left on the device's streams.

#include <optional>
#include <string>

#include "runtime/lane_walker.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"

namespace strata {

class InlineWalker : public LaneWalker {
 public:
  explicit InlineWalker(OpRunner& runner) : runner_(runner) {}

 protected:
  void rethrow_failure() const {
    if (failure_) throw Error(*failure_);
  }
  void run(const Op& op, StepState& step) {
    guarded(op, step, [&] {
      const std::int64_t start = now_ns();
      runner_.run(op, step);
      step.ran(op, {start, now_ns()});
    });
    --step.ops_left;
  }
  // What `work` for an op throws is the failure. The caller's thread may have used another device
  // since the last one.
  template <typename Work>
  void guarded(const Op& op, const StepState& step, const Work& work) {
    rethrow_failure();
    try {
      runner_.device().use_on_this_thread();
      work();
    } catch (const std::exception& error) {
      failure_ = runner_.failure(op, step, error.what());
      runner_.abort_ranks(*failure_);
      runner_.drain_streams();
      throw Error(*failure_);
    }
  }

  OpRunner& runner_;

 private:
  std::optional<std::string> failure_;
};

}  // namespace strata
