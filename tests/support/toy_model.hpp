#pragma once
// The arithmetic of a toy Program: cheap, deterministic, and every output depends on every operand,
// so that a stale or torn tile anywhere changes the bits of the loss.

#include "strata/program/step.hpp"

namespace strata::testing {

class ToyModel : public SegmentRunner {
 public:
  void run(const Segment& segment, const SegmentViews& views, const StepArgs& args,
           Stream& stream) override;
};

// Momentum and a running square, and the weight is the master; or, without moment2, momentum and a
// value split over master and weight.
class ToyOptimizer : public UpdateRunner {
 public:
  void update(const TileUpdate& tile, const UpdateHyper& hyper, const UpdateScalars& scalars,
              Stream& stream) override;
};

}  // namespace strata::testing
