// The work that a model's own code was recorded to do, held against textbook formulas.

#include <gtest/gtest.h>

#include "strata/core/bytes.hpp"
#include "support/llama_70b.hpp"
#include "unit/model/tiny_llama.hpp"

namespace strata::test {
namespace {

// Flops of one micro-batch's products, by their sizes.
struct Textbook {
  explicit Textbook(const LlamaConfig& config, std::int64_t num_tokens)
      : t(static_cast<double>(num_tokens)),
        h(static_cast<double>(config.hidden_size)),
        q(static_cast<double>(config.num_heads * config.head_dim)),
        g(static_cast<double>(config.num_key_value_heads * config.head_dim)),
        f(static_cast<double>(config.intermediate_size)),
        v(static_cast<double>(config.vocab_size)) {}

  double projections() const { return 2 * t * (2 * h * q + 2 * h * g); }
  double gate_up() const { return 4 * t * h * f; }
  double down() const { return 2 * t * h * f; }
  double causal_product() const { return t * t * q; }
  double vocabulary() const { return 2 * t * h * v; }

  double layer_forward() const { return projections() + gate_up() + down() + 2 * causal_product(); }
  // Two products per product of the forward, but five for attention's two.
  double layer_gradients() const {
    return 2 * (projections() + gate_up() + down()) + 5 * causal_product();
  }
  double layer_backward() const { return layer_gradients() + layer_forward() - down(); }

  double t, h, q, g, f, v;
};

struct Recorded {
  Recorded(const LlamaConfig& config, const ComputeShape& shape)
      : model(make_llama(config, shape, *kernels)) {
    Sequence sequence;
    model->declare_state(program, 1);
    model->declare_training(program, sequence, 1, {});
    model->declare_score(program, sequence, 0);
  }

  const SegmentWork& work(SegmentKind kind, int block) const {
    for (const Segment& segment : program.segments) {
      if (segment.kind == kind && segment.block == block) {
        return program.works[static_cast<std::size_t>(segment.work)];
      }
    }
    ensure(false);
    return program.works.front();
  }
  double flops(SegmentKind kind, int block) const { return work(kind, block).flops(); }
  double flops() const {
    double sum = 0;
    for (const Segment& segment : program.segments) sum += program.flops(segment);
    return sum;
  }

  std::unique_ptr<Kernels> kernels = make_cpu_kernels({.num_threads = 1});
  std::unique_ptr<Model> model;
  Program program;
};

double flops_of(const SegmentWork& work, KernelClass kind) {
  double sum = 0;
  for (const KernelWork& kernel : work.kernels) {
    if (kernel.kind == kind) sum += kernel.flops * kernel.calls;
  }
  return sum;
}

void expect_textbook(const Recorded& model, const Textbook& textbook, int head) {
  EXPECT_EQ(model.flops(SegmentKind::forward, 0), 0);
  EXPECT_EQ(model.flops(SegmentKind::forward, 1), textbook.layer_forward());
  EXPECT_EQ(model.flops(SegmentKind::score, head), textbook.vocabulary());
  EXPECT_EQ(model.flops(SegmentKind::loss, head), 3 * textbook.vocabulary());
  EXPECT_EQ(model.flops(SegmentKind::backward, 1), textbook.layer_backward());
  EXPECT_EQ(model.flops(SegmentKind::backward, 0), 0);
}

TEST(LlamaWork, HasTheFlopsOfEveryProductOfTheTextbook) {
  for (const std::int64_t chunk : {0, 7, 13}) {  // The last chunk of logits may be shorter.
    for (const bool ties : {false, true}) {
      LlamaConfig config = tiny_llama();
      config.tie_word_embeddings = ties;
      const Recorded model(config, {DType::bf16, 40, chunk});
      expect_textbook(model, Textbook(config, 40), 3);
    }
  }
}

// Llama-3 70B at 4096 tokens: 144.4 GFLOP per token forward, and the same in recomputation but for
// down_proj and the head.
TEST(LlamaWork, IsThatOfA70BModelWithoutItsMemory) {
  const LlamaConfig config = strata::testing::llama_70b();
  const Recorded model(config, {DType::bf16, 4096, 0});
  const Textbook textbook(config, 4096);
  expect_textbook(model, textbook, 81);
  const double forward = 80 * model.flops(SegmentKind::forward, 1) + textbook.vocabulary();
  EXPECT_NEAR(forward / 4096 / 1e9, 144.4, 0.05);
  const double backward = 80 * textbook.layer_backward() + 2 * textbook.vocabulary();
  EXPECT_EQ(model.flops(), forward + backward + 80 * textbook.layer_forward() +
                               textbook.vocabulary());  // The score's, declared last.
}

TEST(LlamaWork, TellsAttentionFromProducts) {
  const Recorded model(tiny_llama(), {DType::bf16, 40, 0});
  const Textbook textbook(tiny_llama(), 40);
  const SegmentWork& backward = model.work(SegmentKind::backward, 2);
  EXPECT_EQ(flops_of(backward, KernelClass::attention), 7 * textbook.causal_product());
  EXPECT_EQ(flops_of(backward, KernelClass::matmul),
            textbook.layer_backward() - 7 * textbook.causal_product());
  EXPECT_EQ(flops_of(backward, KernelClass::elementwise), 0);
}

// Each weight and its gradient moves at least once, in the compute dtype.
TEST(LlamaWork, MovesAtLeastTheWeightsAndGradientsOfABlock) {
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const Recorded model(tiny_llama(), {dtype, 40, 0});
    const auto weights = static_cast<double>(model.model->blocks()[1].count * dtype_bytes(dtype));
    double bytes = 0;
    for (const KernelWork& kernel : model.work(SegmentKind::backward, 1).kernels) {
      EXPECT_EQ(kernel.dtype, dtype);
      bytes += kernel.bytes * kernel.calls;
    }
    EXPECT_GT(bytes, 3 * weights);
    EXPECT_LT(bytes, 100 * weights);
  }
}

TEST(LlamaWork, SharesOneRecordAmongEqualSegments) {
  const Recorded model(strata::testing::llama_70b(), {DType::bf16, 512, 0});
  EXPECT_LT(model.program.works.size(), 10u);
  for (const Segment& segment : model.program.segments) {
    ASSERT_GE(segment.work, 0) << segment.name;
    EXPECT_FALSE(model.program.works[static_cast<std::size_t>(segment.work)].kernels.empty())
        << segment.name;
  }
}

TEST(LlamaWork, CountsGradientsOfBiases) {
  LlamaConfig config = tiny_llama();
  config.attention_bias = config.mlp_bias = true;
  const Recorded biased(config, {DType::bf16, 40, 0}), plain(tiny_llama(), {DType::bf16, 40, 0});
  EXPECT_EQ(biased.flops(), plain.flops());
  EXPECT_GT(biased.work(SegmentKind::backward, 1).kernels.size(),
            plain.work(SegmentKind::backward, 1).kernels.size());
}

}  // namespace
}  // namespace strata::test
