#pragma once
// A Program of two blocks whose gradients are given: what an optimizer needs to be tested through
// the executor, norm, clipping and tiles included.

#include <cstdint>
#include <memory>
#include <vector>

#include "strata/device/device.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/optim/optimizer.hpp"
#include "strata/plan/plan.hpp"
#include "strata/runtime/executor.hpp"
#include "strata/runtime/state_access.hpp"

namespace strata::testing {

inline constexpr std::int64_t decayed_elements = 5000,
                              plain_elements = 3000;  // the first is two tiles

// make_goldens.py: uniform in [-0.5, 0.5), exact in fp32.
float counter_value(std::uint32_t stream, std::uint32_t counter);

// Writes the gradients of step args.index: counter_value() of the step, times `size`.
class GradientModel : public SegmentRunner {
 public:
  explicit GradientModel(float size) : size_(size) {}
  void run(const Segment& segment, const SegmentViews& views, const StepArgs& args,
           Stream& stream) override;

 private:
  float size_;
};

// Trains the two blocks with an AdamW of fp32 state that decays the first only. All state in host
// memory.
class GradientRun {
 public:
  GradientRun(const OptimizerConfig& config, float gradient_size, std::unique_ptr<Kernels> kernels);

  StepResult step(const UpdateHyper& hyper);
  std::vector<float> read(Role role, int block);

 private:
  void initialise();

  std::unique_ptr<Kernels> kernels_;
  GradientModel model_;
  Optimizer optimizer_;
  Program program_;
  Plan plan_;
  std::unique_ptr<Device> device_;
  TierMemory memory_;
  StateAccess state_;
  Executor executor_;
  StepArgs args_;
};

}  // namespace strata::testing
