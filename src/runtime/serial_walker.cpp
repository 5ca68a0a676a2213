#include "runtime/inline_walker.hpp"

namespace strata {
namespace {

// Each op when it is submitted, in emission order.
class SerialWalker final : public InlineWalker {
 public:
  SerialWalker(const Plan& plan, OpRunner& runner) : InlineWalker(runner), plan_(plan) {}

  void submit(StepState& step) override {
    for (const Op& op : plan_.schedules[step.schedule].ops) run(op, step);
  }
  void wait_reported(const StepState&) override { rethrow_failure(); }
  void wait_complete(const StepState&) override { rethrow_failure(); }

 private:
  const Plan& plan_;
};

}  // namespace

std::unique_ptr<LaneWalker> make_serial_walker(const Plan& plan, OpRunner& runner) {
  return std::make_unique<SerialWalker>(plan, runner);
}

}  // namespace strata
