#pragma once
// The toy's model and optimizer, which compute on the host, for memory of a device: each call waits
// for its stream, copies its operands to the host, computes, and copies back what it may write. So
// toys train on a real device through its own lanes, slots and copies.

#include "strata/device/device.hpp"
#include "strata/program/step.hpp"

namespace strata::testing {

class StagedModel final : public SegmentRunner {
 public:
  StagedModel(Device& device, SegmentRunner& model) : device_(device), model_(model) {}
  void run(const Segment& segment, const SegmentViews& views, const StepArgs& args,
           Stream& stream) override;

 private:
  Device& device_;
  SegmentRunner& model_;
};

class StagedOptimizer final : public UpdateRunner {
 public:
  StagedOptimizer(Device& device, UpdateRunner& optimizer)
      : device_(device), optimizer_(optimizer) {}
  void update(const TileUpdate& tile, const UpdateHyper& hyper, const UpdateScalars& scalars,
              Stream& stream) override;

 private:
  Device& device_;
  UpdateRunner& optimizer_;
};

}  // namespace strata::testing
