#pragma once
// Runs a model's segments in sequence order on the calling thread, one buffer per shard, and checks
// of every segment that it stays inside its memory, writes all it promises and nothing that it only
// reads.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strata/device/device.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/model/model.hpp"
#include "unit/model/guarded_buffer.hpp"

namespace strata::test {

struct MicroBatch {
  std::vector<std::int32_t> tokens, labels, document_start;
};

// The memory that one run of a segment sees.
struct SegmentBuffers {
  std::vector<TensorView> views;               // per use
  std::vector<std::vector<std::byte>> before;  // per use; the shard as it was
  std::vector<GuardedBuffer> contributions;    // per accumulating use
  GuardedBuffer scratch;
};

class ModelHarness {
 public:
  ModelHarness(const LlamaConfig& config, const ComputeShape& shape, Kernels& kernels);

  Model& model() { return *model_; }
  void set_weight(const std::string& name, std::span<const float> values);

  // Each replaces what the one before left.
  void train(std::span<const MicroBatch> micro_batches, double loss_scale,
             const ProgramVariant& variant = {});
  void score(std::span<const MicroBatch> micro_batches, double loss_scale);

  double loss() const { return loss_; }
  std::vector<float> weight(const std::string& name) const;
  std::vector<float> gradient(const std::string& name) const;

 private:
  struct Place {
    std::size_t block = 0;
    const ParameterSpec* parameter = nullptr;
  };

  Place find(const std::string& name) const;
  void prepare(const Program& program, std::span<const MicroBatch> micro_batches);
  void fill(const Shard& shard, std::span<const MicroBatch> micro_batches) const;
  void run(const Program& program, const Sequence& sequence, double loss_scale);
  void run(const Program& program, const Segment& segment, const StepArgs& args);
  SegmentBuffers lay_out(const Program& program, const Segment& segment) const;
  void check(const Program& program, const Segment& segment, const SegmentBuffers& buffers) const;
  void add_contribution(const Shard& gradient, const TensorView& contribution);

  ComputeShape shape_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Stream> stream_ = make_host_device({})->make_stream("model");
  std::vector<std::vector<float>> weights_;    // per block, flat
  std::vector<std::vector<float>> gradients_;  // per block, flat
  std::vector<GuardedBuffer> shards_;          // by ShardId
  double loss_ = 0;
};

}  // namespace strata::test
