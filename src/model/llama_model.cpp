#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "model/llama_costs.hpp"
#include "model/llama_program.hpp"
#include "model/llama_runner.hpp"
#include "strata/core/error.hpp"
#include "strata/model/model.hpp"

namespace strata {
namespace {

void require(bool holds, std::string_view rule, std::int64_t first, std::int64_t second) {
  if (!holds) throw ConfigError(fmt::format("model: {} ({} and {})", rule, first, second));
}

void require_positive(std::string_view name, std::int64_t value) {
  if (value <= 0) throw ConfigError(fmt::format("model: {} must be positive, not {}", name, value));
}

void check_config(const LlamaConfig& config, const ComputeShape& shape) {
  require_positive("vocab_size", config.vocab_size);
  require_positive("hidden_size", config.hidden_size);
  require_positive("intermediate_size", config.intermediate_size);
  require_positive("num_hidden_layers", config.num_layers);
  require_positive("num_attention_heads", config.num_heads);
  require_positive("num_key_value_heads", config.num_key_value_heads);
  require_positive("head_dim", config.head_dim);
  require_positive("tokens per micro-batch", shape.tokens_per_micro_batch);
  require(config.num_heads % config.num_key_value_heads == 0,
          "num_attention_heads must be a multiple of num_key_value_heads", config.num_heads,
          config.num_key_value_heads);
  require(config.head_dim % 2 == 0, "RoPE turns pairs: head_dim must be a multiple of 2",
          config.head_dim, 2);
  require(shape.loss_chunk_tokens >= 0, "loss_chunk_tokens must not be negative",
          shape.loss_chunk_tokens, 0);
  if (shape.compute_dtype == DType::f32 || shape.compute_dtype == DType::bf16) return;
  throw ConfigError(
      fmt::format("model: computes in f32 or bf16, not {}", dtype_name(shape.compute_dtype)));
}

class LlamaModel final : public Model {
 public:
  LlamaModel(const LlamaConfig& config, const ComputeShape& shape, Kernels& kernels)
      : runner_(config, shape, kernels), costs_(record_costs(config, shape, kernels)) {}

  const std::vector<BlockSpec>& blocks() const override { return runner_.layout().blocks; }

  std::int64_t num_parameters() const override {
    std::int64_t count = 0;
    for (const BlockSpec& block : runner_.layout().blocks) {
      for (const ParameterSpec& parameter : block.parameters) count += parameter.count();
    }
    return count;
  }

  void declare_state(Program& program, int micro_batches) const override {
    strata::declare_state(declaration(), program, micro_batches);
  }

  void declare_training(Program& program, Sequence& sequence, int micro_batches,
                        const ProgramVariant& variant) const override {
    strata::declare_training(declaration(), program, sequence, micro_batches, variant);
  }

  void declare_score(Program& program, Sequence& sequence, int micro_batch) const override {
    const LlamaDeclaration model = declaration();
    MicroBatchDeclaration segments(model, program, sequence, micro_batch);
    const int head = static_cast<int>(blocks().size()) - 1;
    for (int block = 0; block < head; ++block) segments.forward(block);
    segments.score();
  }

  void run(const Segment& segment, const SegmentViews& views, const StepArgs& args,
           Stream& stream) override {
    runner_.run(segment, views, args, stream);
  }

 private:
  LlamaDeclaration declaration() const { return runner_.declaration(costs_); }

  LlamaRunner runner_;
  LlamaCosts costs_;  // constant after construction
};

}  // namespace

std::unique_ptr<Model> make_llama(const LlamaConfig& config, const ComputeShape& shape,
                                  Kernels& kernels) {
  check_config(config, shape);
  return std::make_unique<LlamaModel>(config, shape, kernels);
}

}  // namespace strata
