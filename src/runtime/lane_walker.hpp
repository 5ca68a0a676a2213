#pragma once
// How the ops of submitted steps get carried out: on threads, or one at a time on the caller's.

#include <functional>
#include <memory>

#include "runtime/op_runner.hpp"
#include "runtime/step_state.hpp"

namespace strata {

class LaneWalker {
 public:
  virtual ~LaneWalker() = default;
  virtual void submit(StepState& step) = 0;               // `step` stays alive until complete
  virtual void wait_reported(const StepState& step) = 0;  // its report op has run
  virtual void wait_complete(const StepState& step) = 0;  // all its ops have
};

// The op that tells a step's result; every schedule has one.
OpId report_op(const Schedule& schedule);

std::unique_ptr<LaneWalker> make_threaded_walker(const Plan& plan, OpRunner& runner,
                                                 const ExecutorOptions& options);
// Serial (in emission order) or seeded (any legal order).
std::unique_ptr<LaneWalker> make_serial_walker(const Plan& plan, OpRunner& runner);
std::unique_ptr<LaneWalker> make_seeded_walker(const Plan& plan, OpRunner& runner,
                                               std::uint64_t seed);

}  // namespace strata
