#include "runtime/lane_walker.hpp"
#include "strata/core/clock.hpp"

namespace strata {
namespace {

// Each op when it is submitted, in emission order.
class SerialWalker final : public LaneWalker {
 public:
  SerialWalker(const Plan& plan, OpRunner& runner) : plan_(plan), runner_(runner) {}

  void submit(StepState& step) override {
    for (const Op& op : plan_.schedules[step.schedule].ops) {
      const std::int64_t start = now_ns();
      runner_.run(op, step);
      step.busy_ns[static_cast<std::size_t>(op.lane)] += now_ns() - start;
      --step.ops_left;
    }
  }
  void wait_reported(const StepState&) override {}
  void wait_complete(const StepState&) override {}

 private:
  const Plan& plan_;
  OpRunner& runner_;
};

}  // namespace

std::unique_ptr<LaneWalker> make_serial_walker(const Plan& plan, OpRunner& runner) {
  return std::make_unique<SerialWalker>(plan, runner);
}

}  // namespace strata
