#include "model/llama_costs.hpp"

#include <utility>
#include <vector>

#include "model/llama_runner.hpp"
#include "model/scratch_arena.hpp"
#include "strata/core/bytes.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

// One segment's operands and scratch, on the meta device.
class MetaViews {
 public:
  MetaViews(const Program& program, const Segment& segment, Device& device)
      : slab_(device.allocate(bytes_of(program, segment))),
        arena_({slab_.data(), static_cast<std::size_t>(slab_.bytes())}) {
    for (const Use& use : segment.uses) {
      uses_.push_back(arena_.take(dtype_of(program, use), {program.shard(use.shard).count}));
    }
    scratch_ = arena_.take_bytes(segment.scratch_bytes);
  }
  SegmentViews views() const { return {uses_, scratch_}; }

 private:
  static DType dtype_of(const Program& program, const Use& use) {
    const bool contributes = use.access == Access::accumulate;
    return contributes ? program.contribution_dtype : program.shard(use.shard).dtype;
  }
  static std::uint64_t bytes_of(const Program& program, const Segment& segment) {
    ScratchArena counter;
    for (const Use& use : segment.uses) {
      counter.take(dtype_of(program, use), {program.shard(use.shard).count});
    }
    counter.take_bytes(segment.scratch_bytes);
    return counter.peak_bytes();
  }

  Slab slab_;
  ScratchArena arena_;
  std::vector<TensorView> uses_;
  std::span<std::byte> scratch_;
};

// Every kind of segment of a model of one layer, which first recomputes and then keeps.
Program declare_all(const LlamaDeclaration& model) {
  constexpr int layer = 1;
  Program program;
  Sequence sequence;
  declare_state(model, program, 1);
  MicroBatchDeclaration plain(model, program, sequence, 0), keeping(model, program, sequence, 1, 1);
  plain.forward(0);
  plain.forward(layer);
  plain.score();
  plain.loss();
  plain.backward(layer);
  plain.backward(0);
  keeping.forward(layer);
  keeping.backward(layer);
  return program;
}

}  // namespace

LlamaCosts record_costs(const LlamaConfig& config, const ComputeShape& shape,
                        const Kernels& sizes) {
  LlamaConfig one_layer = config;  // All decoder layers are alike.
  one_layer.num_layers = 1;
  std::vector<KernelWork> calls;
  const auto kernels = make_meta_kernels(sizes, calls, shape.row_tokens);
  const auto device = make_meta_device();
  const auto stream = device->make_stream("meta");
  LlamaRunner runner(one_layer, shape, *kernels);
  LlamaCosts costs;
  for (std::size_t i = 0; i < num_llama_segments; ++i) {
    costs[i].scratch_bytes = runner.scratch_bytes(static_cast<LlamaSegment>(i));
  }
  const Program program = declare_all(runner.declaration(costs));
  for (const Segment& segment : program.segments) {
    const MetaViews memory(program, segment, *device);
    runner.run(segment, memory.views(), {}, *stream);
    costs[static_cast<std::size_t>(segment.work)].work.kernels = std::exchange(calls, {});
  }
  return costs;
}

}  // namespace strata
