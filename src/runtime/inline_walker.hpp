#pragma once
// What the walkers that run ops on the caller's thread share. Nothing of theirs is ever in flight
// between two calls, so a failure needs no draining: it is kept, and thrown again by every later
// call.

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
    rethrow_failure();
    try {
      const std::int64_t start = now_ns();
      runner_.run(op, step);
      step.ran(op, {start, now_ns()});
    } catch (const Error& error) {
      failure_ = error.what();
      runner_.abort_ranks(*failure_);
      throw;
    }
    --step.ops_left;
  }

 private:
  OpRunner& runner_;
  std::optional<std::string> failure_;
};

}  // namespace strata
