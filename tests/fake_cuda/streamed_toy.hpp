#pragma once
// The toy's model and optimizer as work of a fake device: launched on the stream of the call,
// carried out on the host when the stream comes to it, with the memory they touch declared.

#include <vector>

#include "fake_cuda/fake_cuda.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/program/step.hpp"

namespace strata::testing {

class StreamedModel final : public SegmentRunner {
 public:
  StreamedModel(FakeCuda& fake, SegmentRunner& model) : fake_(fake), model_(model) {}
  void run(const Segment& segment, const SegmentViews& views, const StepArgs& args,
           Stream& stream) override;

 private:
  FakeCuda& fake_;
  SegmentRunner& model_;
};

class StreamedOptimizer final : public UpdateRunner {
 public:
  StreamedOptimizer(FakeCuda& fake, UpdateRunner& optimizer) : fake_(fake), optimizer_(optimizer) {}
  void update(const TileUpdate& tile, const UpdateHyper& hyper, const UpdateScalars& scalars,
              Stream& stream) override;

 private:
  FakeCuda& fake_;
  UpdateRunner& optimizer_;
};

}  // namespace strata::testing
