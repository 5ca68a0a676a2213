#include "strata/train/trainer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "sim/session_state.hpp"
#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using testing::make_training_files;
using testing::tiny_config;
using testing::TrainingFiles;
using testing::TrainingRun;

const TrainingFiles& files() {
  static const TrainingFiles made = make_training_files(random_model_preset("tiny"));
  return made;
}

RunConfig constant_rate_config(std::int64_t steps) {
  RunConfig config = tiny_config(files());
  config.lr_scheduler_type = ScheduleKind::constant;
  config.max_steps = steps;
  return config;
}

TEST(Trainer, EndsAfterTheCurrentStepOnceToldToStop) {
  TrainingRun stopped(constant_rate_config(20)), whole(constant_rate_config(1));
  const std::atomic<bool> stop = true;
  const TrainOutcome outcome = stopped.train(&stop);
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(outcome.steps, 1);
  EXPECT_GT(outcome.held_out_after.tokens, 0);
  whole.train();
  EXPECT_TRUE(stopped.exported_weights() == whole.exported_weights());
}

TEST(Trainer, IsNotStoppedByAFlagSetInItsLastStep) {
  TrainingRun run(constant_rate_config(1));
  const std::atomic<bool> stop = true;
  EXPECT_FALSE(run.train(&stop).stopped);
}

TEST(Trainer, CountsStepsFromEpochsWhenNoMaximumIsGiven) {
  RunConfig config = constant_rate_config(-1);
  config.num_train_epochs = 0.5;
  config.gradient_accumulation_steps = 16;
  TrainingRun run(config);
  const Batches batches = [&] {
    std::vector<TokenShard> shards;
    shards.emplace_back(config.dataset.front());
    return Batches(std::move(shards), {.sequence_length = config.cutoff_len});
  }();
  const std::int64_t per_epoch = (batches.micro_batches_per_epoch() + 15) / 16;
  EXPECT_EQ(run.train().steps, (per_epoch + 1) / 2);
}

TEST(Trainer, RefusesDataOfAnotherVocabulary) {
  RunConfig config = constant_rate_config(1);
  HfConfig small = random_model_preset("tiny");
  small.vocab_size = 200;
  config.model_name_or_path = make_training_files(small, 3).model;
  EXPECT_THROW(TrainingRun{config}, ConfigError);
}

TEST(Trainer, RefusesARunWithoutData) {
  RunConfig config = constant_rate_config(1);
  config.dataset.clear();
  EXPECT_THROW(TrainingRun{config}, ConfigError);
}

TEST(Session, ExportsTheWeightsItLoadedBeforeTheFirstStep) {
  RunConfig config = constant_rate_config(1);
  config.bf16 = false;  // the model folder is fp32
  TrainingRun run(config);
  EXPECT_TRUE(run.exported_weights() == testing::read_bytes(files().model / "model.safetensors"));
}

TEST(Session, GivesTheSameHeldOutLossTwice) {
  const RunConfig config = constant_rate_config(1);
  TrainingRun run(config);
  const auto batches = held_out_batches(config);
  const Evaluation first = run.session().evaluate(*batches);
  EXPECT_EQ(run.session().evaluate(*batches).loss, first.loss);
  EXPECT_EQ(first.tokens, batches->trained_tokens_in_epoch());
  EXPECT_NEAR(first.loss, std::log(257.0), 0.1);  // random weights know nothing
}

TEST(PlannedRun, RefusesUpdatesDuringBackwardWithClipping) {
  RunConfig config = constant_rate_config(1);
  config.offload.update_order = "during_backward";
  EXPECT_THROW(plan_run(config, Purpose::train), ConfigError);
}

TEST(PlannedRun, RefusesRowsLongerThanTheModelsPositions) {
  RunConfig config = constant_rate_config(1);
  config.cutoff_len = 4096;
  EXPECT_THROW(plan_run(config, Purpose::train), ConfigError);
}

TEST(PlannedRun, GivesTheSamePlanForTheSameConfig) {
  RunConfig config = constant_rate_config(1);
  const PlannedRun one = plan_run(config, Purpose::train), two = plan_run(config, Purpose::train);
  EXPECT_EQ(plan_hash(one.program, one.plan), plan_hash(two.program, two.plan));
  config.offload.state_slots = 7;
  const PlannedRun other = plan_run(config, Purpose::train);
  EXPECT_EQ(plan_hash(one.program, one.plan) == plan_hash(other.program, other.plan), one.plan.pools.empty());
}

}  // namespace
}  // namespace strata
