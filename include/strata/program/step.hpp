#pragma once
// What a step is told and what it answers, and the callbacks through which the executor runs a
// Program's segments without knowing the model or the optimizer.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strata/core/tensor_view.hpp"
#include "strata/program/program.hpp"

namespace strata {

class Stream;

// Hyper-parameters of one optimizer step; nothing is cached between steps.
struct UpdateHyper {
  std::int64_t step = 1;  // 1-based count of applied updates, for bias correction
  float learning_rate = 0;
  float max_grad_norm = 0;  // 0: no clipping
};

// One step's arguments. Owned by the caller, unchanged and alive until the step's result has been
// returned and all its ops have completed (Executor::drain or two steps later).
struct StepArgs {
  std::int64_t index = 0;  // steps since the run began, 0-based; also names the step in errors
  std::vector<std::span<const std::byte>> inputs;  // per micro-batch, the bytes of its input shard
  double loss_scale = 1.0;  // 1 / trained tokens of the whole step, all micro-batches and ranks
  UpdateHyper hyper;
};

// One step's answers. `loss` is the sum of token losses times loss_scale: the mean loss of the
// step.
struct StepResult {
  std::int64_t index = 0;
  double loss = 0;
  double grad_norm = 0;                    // before clipping
  bool finite = true;                      // all gradients were
  bool applied = true;                     // the update was applied
  std::vector<double> micro_batch_losses;  // each times loss_scale
};

// Global scalars computed by the norm segment and read by each update of the step.
struct UpdateScalars {
  double grad_norm = 0;
  float clip_factor = 1;
  std::uint32_t apply = 1;  // 0: keep master and moments as they are
};

// Views of a segment's uses, in the order of Segment::uses (an `accumulate` use is the
// contribution, flat, in the Program's contribution dtype), plus scratch. All views lie on the
// device.
struct SegmentViews {
  std::span<const TensorView> uses;
  std::span<std::byte> scratch;
};

// Implemented by the model. run() computes on `stream` and keeps nothing between calls; it is
// called from one thread.
class SegmentRunner {
 public:
  virtual ~SegmentRunner() = default;
  virtual void run(const Segment& segment, const SegmentViews& views, const StepArgs& args,
                   Stream& stream) = 0;
};

// One tile's operands for one update, by role; all in memory the engine that runs it can reach.
struct TileUpdate {
  const Segment* segment = nullptr;
  int block = -1;
  std::int64_t begin = 0;  // first element of the tile within the block's flat vector
  TensorView gradient;     // f32 or bf16
  TensorView master;       // f32; or u16, the low bits of a split one
  TensorView moment1;      // f32, bf16 or q8
  TensorView moment2;      // likewise; empty where the optimizer keeps none
  TensorView weight;       // written: rounded from the new master; read too where that is split

  TensorView& operand(Role role);
};

// Implemented by the optimizer; element-wise, so any split into tiles gives the same bits. Called
// from the update lane or the compute lane, never from both for the same tile.
class UpdateRunner {
 public:
  virtual ~UpdateRunner() = default;
  virtual void update(const TileUpdate& tile, const UpdateHyper& hyper,
                      const UpdateScalars& scalars, Stream& stream) = 0;
};

}  // namespace strata
