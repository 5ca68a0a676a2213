// The norms of the heads of q and k that Qwen3 has: where their weights lie, what they compute and
// what they take.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "unit/model/tiny_llama.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t num_tokens = 40;
const std::string query_norm = "model.layers.1.self_attn.q_norm.weight",
                  key_norm = "model.layers.1.self_attn.k_norm.weight";

std::array<MicroBatch, 1> packed_rows() {
  return {packed_row(std::array<std::int64_t, 3>{19, 1, 20}, tiny_qwen3().vocab_size, 0)};
}

const ParameterSpec& parameter(const Model& model, const std::string& name) {
  return *std::ranges::find(model.blocks()[2].parameters, name, &ParameterSpec::name);
}

TEST(HeadNorms, HaveAWeightOfHeadDimEachThatDoesNotDecay) {
  const auto kernels = make_ref_kernels();
  const auto model = make_llama(tiny_qwen3(), {DType::f32, num_tokens, 0}, *kernels);
  for (const std::string& name : {query_norm, key_norm}) {
    EXPECT_EQ(parameter(*model, name).shape, (Shape{8})) << name;
    EXPECT_FALSE(parameter(*model, name).decays) << name;
  }
  const auto plain = make_llama(tiny_llama(), {DType::f32, num_tokens, 0}, *kernels);
  EXPECT_EQ(model->num_parameters(), plain->num_parameters() + 2 * (8 + 8));
}

class HeadNormsRun : public ::testing::TestWithParam<const char*> {
 protected:
  ModelHarness make(const LlamaConfig& config, DType dtype = DType::f32) {
    ModelHarness harness(config, {dtype, num_tokens, 0}, *kernels_);
    set_random_weights(harness);
    return harness;
  }
  static double loss_of(ModelHarness& harness) {
    const auto rows = packed_rows();
    harness.score(rows, loss_scale_of(rows));
    return harness.loss();
  }

  std::unique_ptr<Kernels> kernels_ = make_kernels(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Kernels, HeadNormsRun, ::testing::Values("ref", "cpu"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(HeadNormsRun, MakeTheSizeOfAHeadsProjectionOfNoAccount) {
  ModelHarness once = make(tiny_qwen3()), tenfold = make(tiny_qwen3());
  const std::string name = "model.layers.0.self_attn.k_proj.weight";
  std::vector<float> weight = random_values(16 * 24, 0, 5);
  for (float& element : weight) element *= 100;  // The norm's epsilon is lost beside it.
  once.set_weight(name, weight);
  for (float& element : weight) element *= 10;
  tenfold.set_weight(name, weight);
  EXPECT_LE(relative_error(loss_of(tenfold), loss_of(once)), 1e-6);
}

// In each element by a difference of losses, where a step is small for the loss's curvature and
// large for its rounding.
TEST_P(HeadNormsRun, HaveTheGradientsOfTheLoss) {
  constexpr float step = 2e-2f;
  ModelHarness harness = make(tiny_qwen3());
  const auto rows = packed_rows();
  std::vector<std::string> names{query_norm, key_norm, "model.layers.0.self_attn.q_proj.weight",
                                 "model.layers.0.self_attn.k_proj.weight"};
  for (const std::string& name : names) {
    set_random_weights(harness);
    harness.train(rows, loss_scale_of(rows));
    const std::vector<float> gradient = harness.gradient(name);
    const std::size_t count = std::min<std::size_t>(gradient.size(), 24);
    std::vector<float> weight(gradient.size()), differences;
    const std::vector<float> before = harness.weight(name);
    for (std::size_t i = 0; i < count; ++i) {
      std::array<double, 2> losses{};
      for (const int side : {0, 1}) {
        weight = before;
        weight[i] += side == 0 ? step : -step;
        harness.set_weight(name, weight);
        losses[static_cast<std::size_t>(side)] = loss_of(harness);
      }
      const double moved = 2 * static_cast<double>(step);
      differences.push_back(static_cast<float>((losses[0] - losses[1]) / moved));
    }
    EXPECT_LE(relative_error(std::span(gradient).first(count), differences), 2e-2) << name;
  }
}

// Bytes that a layer saves, as Llama and as Qwen3.
std::int64_t saved_bytes(const LlamaConfig& config) {
  const auto kernels = make_ref_kernels();
  const auto model = make_llama(config, {DType::bf16, num_tokens, 0}, *kernels);
  Program program;
  Sequence train{"train", {}};
  model->declare_state(program, 1);
  model->declare_training(program, train, 1, {1, 2});
  return program.shard(program.find(Role::saved, 1, 0)).bytes();
}

TEST(HeadNorms, SaveTheProjectedHeadsAndTheirRootsWhereALayerIsKept) {
  constexpr std::int64_t heads = 4 + 2, d = 8, alignment = 256;
  const std::int64_t more = saved_bytes(tiny_qwen3()) - saved_bytes(tiny_llama());
  const std::int64_t values = num_tokens * heads * (2 * d + 4);
  EXPECT_GE(more, values);
  EXPECT_LT(more, values + 4 * alignment);
}

// Bytes that kernels move in the forward and the backward of a layer.
double bytes_moved(const LlamaConfig& config, SegmentKind kind) {
  const auto kernels = make_ref_kernels();
  const auto model = make_llama(config, {DType::bf16, num_tokens, 0}, *kernels);
  Program program;
  Sequence train{"train", {}};
  model->declare_state(program, 1);
  model->declare_training(program, train, 1, {});
  const auto segment = std::ranges::find_if(
      program.segments, [&](const Segment& s) { return s.kind == kind && s.block == 1; });
  double bytes = 0;
  for (const KernelWork& work : program.works[static_cast<std::size_t>(segment->work)].kernels)
    bytes += work.bytes * work.calls;
  return bytes;
}

TEST(HeadNorms, CostTheBytesTheyMove) {
  constexpr double q = 4, g = 2, d = 8, t = num_tokens;
  constexpr double forward = 2 * 2 * t * (q + g) * d + 4 * t * (q + g) + 2 * 2 * d;
  constexpr double gaps = 2 * 2 * (64 - d);  // behind each weight's gradient: zeros are written
  constexpr double backward = 3 * 2 * t * (q + g) * d + 4 * t * (q + g) + 2 * 2 * 2 * d + gaps;
  const auto more = [](SegmentKind kind) {
    return bytes_moved(tiny_qwen3(), kind) - bytes_moved(tiny_llama(), kind);
  };
  EXPECT_EQ(more(SegmentKind::forward), forward);
  EXPECT_EQ(more(SegmentKind::backward), forward + backward) << "with its forward again";
}

}  // namespace
}  // namespace strata::test
