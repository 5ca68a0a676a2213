// A model with norms of the heads of q and k, end to end: where its state lives, how many ranks
// share it, whether it went on from a checkpoint and what it is exported to.

#include <gtest/gtest.h>

#include "sim/placement_checks.hpp"
#include "sim/rank_training.hpp"
#include "sim/resumed_run.hpp"
#include "strata/checkpoint/llama_tensors.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using testing::difference;
using testing::of_ranks;
using testing::Outcome;
using testing::PlacementChecks;
using testing::rounds;
using testing::tiny_config;
using testing::train;
using testing::train_on_ranks;
using testing::TrainingFiles;

const TrainingFiles& qwen3_files() {
  static const TrainingFiles made = [] {
    HfConfig model = random_model_preset("tiny");
    model.query_key_norm = true;
    model.head_dim = 24;  // not hidden_size / heads
    return testing::make_training_files(model);
  }();
  return made;
}

RunConfig config() {
  RunConfig config = tiny_config(qwen3_files());
  config.max_steps = 8;
  return config;
}

// All in host memory, one op after the other.
const Outcome& plain() {
  static const Outcome made = train(config(), {ExecutionMode::serial});
  return made;
}

TEST(Qwen3, TrainsItsHeadNormsWithTheRest) {
  EXPECT_LT(plain().held_out.back(), plain().held_out.front() - 0.05);
  testing::TrainingRun run(config());
  run.train();
  const auto exported = run.output_dir() / "export";
  run.session().export_to(exported);
  const HfConfig base = read_hf_config(qwen3_files().model), written = read_hf_config(exported);
  EXPECT_EQ(written.architecture, "Qwen3ForCausalLM");
  EXPECT_EQ(hf_config_text(written, DType::f32), hf_config_text(base, DType::f32));
  const HfWeights weights(exported, llama_tensors(written));
  for (const char* name : {"q_norm", "k_norm"}) {
    std::vector<float> values(24);
    weights.read_f32(std::string("model.layers.1.self_attn.") + name + ".weight", 0, values);
    for (const float value : values) EXPECT_NEAR(value, 1, 0.1) << name;
    EXPECT_NE(values, std::vector<float>(24, 1.0f)) << name;
  }
}

TEST(Qwen3, HasTheSameBitsWhereverItsStateLives) {
  const PlacementChecks checks(config(), plain());
  checks.on_threads(300, rounds(8, 2));
  checks.in_legal_orders(400, rounds(6, 2));
  checks.layers_kept();
}

TEST(Qwen3, HasTheSameBitsInEveryStage) {
  RunConfig of_two = of_ranks(config(), 2, 0);
  of_two.max_steps = 4;
  const Outcome whole = train_on_ranks(of_two, {{ExecutionMode::serial}}).outcome;
  for (const int stage : {1, 2, 3}) {
    RunConfig placed = of_two;
    testing::place_ranks_randomly(placed, static_cast<std::uint64_t>(700 + stage));
    placed.zero_stage = stage;
    EXPECT_EQ(difference(whole, train_on_ranks(placed).outcome), "") << "stage " << stage;
  }
}

TEST(Qwen3, GoesOnFromACheckpointWithTheSameBits) {
  testing::ResumeBench bench;
  const RunConfig saving = testing::saving_config(qwen3_files(), 3, 6);
  const testing::RunTrail whole = bench.train(saving, 1);
  RunConfig placed = saving;
  placed.offload.keep_layers = 1;
  const testing::RunTrail resumed = bench.train(placed, 1, testing::checkpoint_of(saving, 3));
  EXPECT_EQ(testing::difference_after(3, whole, resumed), "");
}

}  // namespace
}  // namespace strata
