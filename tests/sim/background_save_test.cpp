// Checkpoints that are written while training goes on: what they hold is what a run that stands
// still for them writes, and training knows nothing of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "sim/resumed_run.hpp"
#include "sim/ways_to_hold_state.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using testing::all_ways;
using testing::checkpoint_of;
using testing::difference_after;
using ::testing::ElementsAre;
using testing::fresh_folder;
using ::testing::HasSubstr;
using testing::in_ram;
using ::testing::IsEmpty;
using testing::make_training_files;
using testing::mixed;
using testing::ResumeBench;
using testing::RunTrail;
using testing::RunWatch;
using testing::saving_config;
using testing::small_tiles;
using testing::split;
using testing::two_stage_3;
using testing::Way;

constexpr std::int64_t saved_step = 3, last_step = 5;

class BackgroundSave : public ::testing::Test {
 protected:
  BackgroundSave() : files_(make_training_files(random_model_preset("tiny"))) {}

  RunConfig config(const Way& way) const {
    RunConfig config = saving_config(files_, saved_step, last_step);
    config.gradient_accumulation_steps = 6 / way.world;
    way.apply(config);
    return config;
  }
  RunConfig paused(const Way& way) const {
    RunConfig config = this->config(way);
    config.save_in_background = false;
    return config;
  }
  std::vector<std::int64_t> steps_in(const RunConfig& config) {
    std::vector<std::int64_t> steps;
    for (const CheckpointEntry& entry :
         list_checkpoints(bench_.disk().file_system(), config.output_dir.string()))
      steps.push_back(entry.step);
    return steps;
  }
  // Of two checkpoints; empty: none.
  std::string difference(const std::string& one, const std::string& other) {
    return testing::checkpoint_difference(bench_.disk(), one, other);
  }

  testing::TrainingFiles files_;
  ResumeBench bench_;
};

TEST_F(BackgroundSave, WritesWhatARunThatStandsStillWrites) {
  for (const Way& way : all_ways()) {
    const RunConfig along = config(way), still = paused(way);
    const RunTrail beside = bench_.train(along, way.world), plain = bench_.train(still, way.world);
    EXPECT_EQ(difference(checkpoint_of(along, saved_step), checkpoint_of(still, saved_step)), "")
        << way.name;
    EXPECT_EQ(difference_after(0, plain, beside), "") << way.name;
    EXPECT_THAT(beside.saved, ElementsAre(saved_step)) << way.name;
    EXPECT_THAT(beside.events, IsEmpty()) << way.name;
  }
}

TEST_F(BackgroundSave, ResumesToTheSameBits) {
  for (const Way& way : {mixed, split, two_stage_3}) {
    const RunConfig first = config(way);
    const RunTrail whole = bench_.train(first, way.world);
    const RunTrail resumed = bench_.train(config(way), way.world, checkpoint_of(first, saved_step));
    EXPECT_EQ(difference_after(saved_step, whole, resumed), "") << way.name;
  }
}

TEST_F(BackgroundSave, IsTheSameInAnyLegalOrderOfAStepsOps) {
  for (const Way& way : {in_ram, mixed, split}) {
    const RunConfig still = paused(way);
    const RunTrail plain = bench_.train(still, way.world);
    for (const std::uint64_t seed : {1u, 2u}) {
      const RunConfig along = config(way);
      RunWatch watch;
      watch.executor = {ExecutionMode::seeded, seed, Poison::on};
      EXPECT_EQ(difference_after(0, plain, bench_.train(along, 1, "", watch)), "");
      EXPECT_EQ(difference(checkpoint_of(along, saved_step), checkpoint_of(still, saved_step)), "")
          << way.name << ", seed " << seed;
    }
  }
}

TEST_F(BackgroundSave, PacksApproximateMomentsAsARunThatStandsStillDoes) {
  for (const DType moments : {DType::bf16, DType::q8}) {
    RunConfig along = config(small_tiles), still = paused(small_tiles);
    along.optimizer_moments = still.optimizer_moments = moments;
    bench_.train(along, 1);
    bench_.train(still, 1);
    EXPECT_EQ(difference(checkpoint_of(along, saved_step), checkpoint_of(still, saved_step)), "");
  }
}

TEST_F(BackgroundSave, WaitsForTheOneBeforeAndSaysSoOnce) {
  for (const int world : {1, 3}) {
    RunConfig often = config(in_ram);
    often.gradient_accumulation_steps = 6 / world;
    often.save_steps = 1;
    const RunTrail trail = bench_.train(often, world);
    EXPECT_THAT(trail.saved, ElementsAre(1, 2, 3, 4, 5));
    EXPECT_THAT(trail.events, ElementsAre(HasSubstr("training waits for that one")));
    RunConfig never = often;
    never.output_dir = fresh_folder("run");
    never.save_strategy = SaveStrategy::no;
    EXPECT_EQ(difference_after(0, bench_.train(never, world), trail), "");
  }
}

TEST_F(BackgroundSave, IsMadeOnRequestWhileTrainingGoesOn) {
  RunConfig seldom = config(in_ram);
  seldom.save_steps = 500;
  std::atomic<bool> save = false;
  int steps = 0;
  RunWatch watch;
  watch.save = &save;
  watch.before_op_of_first = [&](const Op& op) {
    if (op.kind == OpKind::report && ++steps == 2) save = true;
  };
  const RunTrail trail = bench_.train(seldom, 1, "", watch);
  EXPECT_THAT(trail.saved, ElementsAre(2));
  const RunTrail resumed = bench_.train(config(in_ram), 1, checkpoint_of(seldom, 2));
  EXPECT_EQ(difference_after(2, trail, resumed), "");
}

TEST_F(BackgroundSave, OfOneStepIsWhereTheNextBegins) {
  RunConfig limited = config(in_ram);
  limited.save_steps = 1;
  limited.save_total_limit = 2;
  bench_.train(limited, 1);
  EXPECT_THAT(steps_in(limited), ElementsAre(last_step - 1, last_step));
}

}  // namespace
}  // namespace strata
