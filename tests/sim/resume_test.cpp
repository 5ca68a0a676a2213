// A run that goes on from a checkpoint, on other tiers, ratios, ranks, stages and tiles than wrote
// it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/resumed_run.hpp"
#include "sim/ways_to_hold_state.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using testing::checkpoint_of;
using testing::difference_after;
using ::testing::HasSubstr;
using testing::in_ram;
using testing::make_training_files;
using testing::mixed;
using testing::on_device;
using testing::on_nvme;
using testing::ResumeBench;
using testing::RunTrail;
using testing::saving_config;
using testing::small_tiles;
using testing::split;
using testing::three_stage_2;
using ::testing::ThrowsMessage;
using testing::two_stage_0;
using testing::two_stage_1;
using testing::two_stage_3;
using testing::Way;

constexpr std::int64_t resumed_step = 4, resumed_last_step = 8;

class Resume : public ::testing::Test {
 protected:
  Resume() : files_(make_training_files(random_model_preset("tiny"))) {}

  // The same global batch of 6 micro-batches on however many ranks.
  RunConfig config(const Way& way) const {
    RunConfig config = saving_config(files_, resumed_step, resumed_last_step);
    config.gradient_accumulation_steps = 6 / way.world;
    way.apply(config);
    return config;
  }

  testing::TrainingFiles files_;
  ResumeBench bench_;
};

struct Pair {
  Way from, to;
};

TEST_F(Resume, GivesTheSameBitsWhereTheWorldIsTheSame) {
  const std::vector<Pair> pairs{{in_ram, on_nvme},
                                {on_nvme, on_device},
                                {on_device, mixed},
                                {mixed, small_tiles},
                                {small_tiles, in_ram},
                                {in_ram, split},
                                {split, mixed},
                                {two_stage_3, two_stage_1},
                                {two_stage_1, two_stage_0},
                                {two_stage_0, two_stage_3}};
  for (const auto& [from, to] : pairs) {
    const RunConfig first = config(from);
    const RunTrail whole = bench_.train(first, from.world);
    const RunTrail resumed = bench_.train(config(to), to.world, checkpoint_of(first, resumed_step));
    EXPECT_EQ(resumed.steps.begin()->first, resumed_step + 1);
    EXPECT_EQ(difference_after(resumed_step, whole, resumed), "") << from.name << " -> " << to.name;
  }
}

TEST_F(Resume, GivesTheSameWithinRoundingWhereTheWorldIsAnother) {
  const std::vector<Pair> pairs{
      {in_ram, two_stage_3}, {two_stage_1, three_stage_2}, {three_stage_2, on_nvme}};
  for (const auto& [from, to] : pairs) {
    const RunConfig first = config(from);
    const RunTrail whole = bench_.train(first, from.world);
    const RunTrail resumed = bench_.train(config(to), to.world, checkpoint_of(first, resumed_step));
    for (const auto& [step, loss] : resumed.steps)
      EXPECT_NEAR(loss.first, whole.steps.at(step).first, 2e-3 * loss.first)
          << from.name << " -> " << to.name << ", step " << step;
    EXPECT_EQ(resumed.learning_rates.at(resumed_last_step),
              whole.learning_rates.at(resumed_last_step));
  }
}

TEST_F(Resume, KeepsApproximateMoments) {
  for (const DType moments : {DType::bf16, DType::q8}) {
    RunConfig first = config(in_ram), second = config(on_nvme);
    first.optimizer_moments = second.optimizer_moments = moments;
    second.offload.tile_bytes = 16 << 10;
    const RunTrail whole = bench_.train(first, 1);
    const RunTrail resumed = bench_.train(second, 1, checkpoint_of(first, resumed_step));
    EXPECT_EQ(difference_after(resumed_step, whole, resumed), "");
  }
}

TEST_F(Resume, FindsItsPlaceWithOtherMicroBatchesOfTheSameGlobalBatch) {
  RunConfig first = config(in_ram), second = config(in_ram);
  first.bf16 = second.bf16 = false;
  second.per_device_train_batch_size *= 2;
  second.gradient_accumulation_steps /= 2;
  const RunTrail whole = bench_.train(first, 1);
  const RunTrail resumed = bench_.train(second, 1, checkpoint_of(first, resumed_step));
  for (const auto& [step, loss] : resumed.steps)
    EXPECT_NEAR(loss.first, whole.steps.at(step).first, 1e-5 * loss.first) << step;
}

TEST_F(Resume, RefusesWhatIsNotTheSameRun) {
  const RunConfig first = config(in_ram);
  bench_.train(first, 1);
  const auto refused = [&](const std::function<void(RunConfig&)>& change) {
    RunConfig other = config(in_ram);
    change(other);
    return [this, other, &first] { bench_.train(other, 1, checkpoint_of(first, resumed_step)); };
  };
  EXPECT_THAT(refused([](RunConfig& c) { c.data_seed = 7; }),
              ThrowsMessage<Error>(HasSubstr("data_seed")));
  EXPECT_THAT(refused([](RunConfig& c) { c.optimizer_moments = DType::bf16; }),
              ThrowsMessage<Error>(HasSubstr("optimizer_moments")));
  EXPECT_THAT(refused([](RunConfig& c) { c.cutoff_len /= 2; }),
              ThrowsMessage<Error>(HasSubstr("cutoff_len")));
  EXPECT_THAT(refused([](RunConfig& c) { c.optim = UpdateRule::lion; }),
              ThrowsMessage<Error>(HasSubstr("optim")));
}

TEST_F(Resume, RefusesToEndBeforeItsCheckpoint) {
  const RunConfig first = config(in_ram);
  bench_.train(first, 1);
  RunConfig shorter = config(in_ram);
  shorter.max_steps = resumed_step - 1;
  EXPECT_THAT([&] { bench_.train(shorter, 1, checkpoint_of(first, resumed_step)); },
              ThrowsMessage<ConfigError>(HasSubstr("max_steps")));
}

TEST_F(Resume, TellsWhichRanksCouldGoOnWhereTheRowsDoNotDivide) {
  const RunConfig first = config(in_ram);
  bench_.train(first, 1);
  RunConfig other = config(in_ram);
  other.per_device_train_batch_size = 7;
  EXPECT_THAT([&] { bench_.train(other, 3, checkpoint_of(first, resumed_step)); },
              ThrowsMessage<ConfigError>(HasSubstr("so that their product divides it")))
      << "of the kind that it has on one rank";
}

TEST_F(Resume, KeepsAsManyCheckpointsAsItWasTold) {
  RunConfig limited = config(in_ram);
  limited.save_steps = 1;
  limited.save_total_limit = 2;
  bench_.train(limited, 1);
  const auto kept = list_checkpoints(bench_.disk().file_system(), limited.output_dir.string());
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].step, resumed_last_step - 1);
  EXPECT_EQ(kept[1].step, resumed_last_step);
}

}  // namespace
}  // namespace strata
