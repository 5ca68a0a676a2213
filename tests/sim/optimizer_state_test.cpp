// What an optimizer keeps and how is its own affair: whatever it is, where it lives never changes a
// bit, and a split master gives the bits of a whole one.

#include <gtest/gtest.h>

#include <map>

#include "sim/placement_checks.hpp"
#include "sim/session_state.hpp"
#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using testing::difference;
using testing::make_training_files;
using testing::Outcome;
using testing::place_randomly;
using testing::PlacementChecks;
using testing::rounds;
using testing::state_bytes;
using testing::tiny_config;
using testing::train;
using testing::TrainingFiles;
using testing::TrainingRun;

// An optimizer and how its state is kept.
struct State {
  const char* name;
  UpdateRule rule;
  MasterFormat master;
  DType moments;
};

void PrintTo(const State& state, std::ostream* out) { *out << state.name; }

const TrainingFiles& state_files(DType dtype = DType::f32) {
  static std::map<DType, TrainingFiles> made;
  if (!made.contains(dtype))
    made[dtype] = make_training_files(random_model_preset("tiny"), 200, dtype);
  return made[dtype];
}

// Two micro-batches a step, clipping, held-out loss in between.
RunConfig config_of(const State& state, const TrainingFiles& of = state_files()) {
  RunConfig config = tiny_config(of);
  config.max_steps = rounds(12, 6);
  config.eval_steps = 5;
  config.optim = state.rule;
  config.optimizer_master = state.master;
  config.optimizer_moments = state.moments;
  if (state.rule == UpdateRule::sgd) config.sgd_momentum = 0.9;
  if (state.rule == UpdateRule::lion) config.learning_rate = 5e-4;
  return config;
}

class StatePlacement : public ::testing::TestWithParam<State> {
 protected:
  static RunConfig config() { return config_of(GetParam()); }
  // All in host memory, one op after the other.
  static const Outcome& plain() {
    static std::map<std::string, Outcome> known;
    const std::string name = GetParam().name;
    if (!known.contains(name)) known[name] = train(config(), {ExecutionMode::serial});
    return known[name];
  }
  static PlacementChecks checks() { return {config(), plain()}; }
};

INSTANTIATE_TEST_SUITE_P(
    States, StatePlacement,
    ::testing::Values(
        State{"Split", UpdateRule::adamw, MasterFormat::split, DType::f32},
        State{"Bf16Moments", UpdateRule::adamw, MasterFormat::f32, DType::bf16},
        State{"SplitWithBf16Moments", UpdateRule::adam, MasterFormat::split, DType::bf16},
        State{"Q8Moments", UpdateRule::adamw, MasterFormat::f32, DType::q8},
        State{"SplitWithQ8Moments", UpdateRule::adamw, MasterFormat::split, DType::q8},
        State{"Lion", UpdateRule::lion, MasterFormat::f32, DType::f32},
        State{"SplitLionWithQ8Moments", UpdateRule::lion, MasterFormat::split, DType::q8},
        State{"Sgd", UpdateRule::sgd, MasterFormat::split, DType::f32}),
    [](const auto& chosen) { return chosen.param.name; });

TEST_P(StatePlacement, TrainsAtAll) {
  ASSERT_EQ(plain().losses.size(), static_cast<std::size_t>(config().max_steps));
  ASSERT_GE(plain().held_out.size(), 3u);
  EXPECT_LT(plain().held_out.back(), plain().held_out.front());
}

TEST_P(StatePlacement, NeverChangesABitOnThreads) { checks().on_threads(300, rounds(8, 2)); }

TEST_P(StatePlacement, NeverChangesABitInAnyLegalOrder) {
  checks().in_legal_orders(400, rounds(6, 1));
}

TEST_P(StatePlacement, NeverChangesABitWithEverythingInOneTier) {
  for (const TierFractions tier : {TierFractions{1, 0, 0}, TierFractions{0, 0, 1}})
    checks().expect_plain_bits(checks().all_in(tier), {}, tier.nvme > 0 ? "nvme" : "gpu");
}

TEST_P(StatePlacement, NeverChangesABitWithTheWeightInAnotherTierThanItsState) {
  const TierFractions tiers[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  for (const TierFractions& weights : tiers)
    for (const TierFractions& state : tiers) {
      RunConfig placed = config();
      OffloadConfig& o = placed.offload;
      o.weights = weights;
      for (TierFractions* role : {&o.master, &o.moment1, &o.moment2}) *role = state;
      placed.offload.state_slots = placed.offload.staging_slots = 1;
      checks().expect_plain_bits(placed, {ExecutionMode::serial, 0, Poison::on}, "tiers");
    }
}

TEST_P(StatePlacement, NeverChangesABitWhetherUpdatesRunDuringOrAfterBackward) {
  checks().updates_during_backward(500, rounds(4, 1));
}

// --- Split and whole masters.

// Masters as they are at the end, from an export in fp32, whichever way they were kept.
Outcome with_master_weights(RunConfig config, MasterFormat master, std::uint64_t placement) {
  config.optimizer_master = master;
  config.export_dtype = DType::f32;
  place_randomly(config, placement);
  return train(config);
}

void expect_same_bits(RunConfig config, const char* what) {
  config.max_steps = rounds(30, 8);
  const Outcome whole = with_master_weights(config, MasterFormat::f32, 1);
  EXPECT_EQ(difference(whole, with_master_weights(config, MasterFormat::split, 2)), "") << what;
}

TEST(SplitMaster, GivesTheBitsOfAWholeOne) {
  const State states[] = {{"fp32", UpdateRule::adamw, MasterFormat::f32, DType::f32},
                          {"bf16", UpdateRule::adamw, MasterFormat::f32, DType::bf16},
                          {"q8", UpdateRule::adamw, MasterFormat::f32, DType::q8},
                          {"lion", UpdateRule::lion, MasterFormat::f32, DType::f32},
                          {"sgd", UpdateRule::sgd, MasterFormat::f32, DType::f32}};
  for (const State& state : states) expect_same_bits(config_of(state), state.name);
  expect_same_bits(config_of(states[0], state_files(DType::bf16)), "a file of bf16");
}

TEST(SplitMaster, ExportsTheSameWorkingWeights) {
  RunConfig config = config_of({"", UpdateRule::adamw, MasterFormat::f32, DType::f32});
  const Outcome whole = train(config);
  config.optimizer_master = MasterFormat::split;
  EXPECT_EQ(difference(whole, train(config)), "");
}

std::vector<float> all_elements(const std::filesystem::path& folder, const Model& model) {
  const std::vector<ExpectedTensor> tensors = expected_tensors(model);
  const HfWeights weights(folder, tensors);
  std::vector<float> values;
  for (const ExpectedTensor& tensor : tensors) {
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= size;
    const std::size_t begin = values.size();
    values.resize(begin + static_cast<std::size_t>(count));
    weights.read_f32(tensor.name, 0, std::span(values).subspan(begin));
  }
  return values;
}

TEST(SplitMaster, LosesNoBitOfAFileOfFp32) {
  for (const MasterFormat master : {MasterFormat::f32, MasterFormat::split}) {
    RunConfig config = config_of({"", UpdateRule::adamw, master, DType::f32});
    config.export_dtype = DType::f32;
    config.offload.tile_bytes = 16 << 10;
    place_randomly(config, 7);
    TrainingRun run(config);
    const auto target = run.output_dir() / "untrained";
    run.session().export_to(target);
    const Model& model = *run.session().run().model;
    EXPECT_TRUE(all_elements(target, model) == all_elements(state_files().model, model));
  }
}

bool all_zero(const std::string& bytes) {
  return bytes.find_first_not_of('\0') == std::string::npos;
}

TEST(SplitMaster, AddsNothingToAFileOfBf16) {
  const State split{"", UpdateRule::adamw, MasterFormat::split, DType::q8};
  TrainingRun run(config_of(split, state_files(DType::bf16)));
  EXPECT_TRUE(all_zero(state_bytes(run.session(), {Role::master})));
  EXPECT_TRUE(all_zero(state_bytes(run.session(), {Role::moment1, Role::moment2})));
  EXPECT_FALSE(all_zero(state_bytes(run.session(), {Role::weight})));
}

// --- Approximate moments.

TEST(ApproximateMoments, StayNearExactOnesAndAreNotThem) {
  RunConfig config = config_of({"", UpdateRule::adamw, MasterFormat::f32, DType::f32});
  config.max_steps = rounds(40, 20);
  const Outcome exact = train(config);
  for (const DType moments : {DType::bf16, DType::q8}) {
    config.optimizer_moments = moments;
    const Outcome got = train(config);
    EXPECT_NE(got.losses, exact.losses);
    EXPECT_NEAR(got.held_out.back(), exact.held_out.back(), 0.02 * exact.held_out.back())
        << dtype_name(moments);
  }
}

TEST(ApproximateMoments, AreRoundedBySeed) {
  RunConfig config = config_of({"", UpdateRule::adamw, MasterFormat::f32, DType::q8});
  config.data_seed = 1;
  const Outcome one = train(config);
  config.seed += 1;
  EXPECT_NE(train(config).losses, one.losses);
  config.optimizer_moments = DType::f32;
  const Outcome exact = train(config);
  config.seed += 1;
  EXPECT_EQ(difference(exact, train(config)), "");
}

}  // namespace
}  // namespace strata
