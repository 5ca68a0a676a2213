#include "strata/train/trainer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <iterator>
#include <thread>

#include "sim/session_state.hpp"
#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"
#include "support/polling.hpp"

namespace strata {
namespace {

using testing::make_training_files;
using testing::tiny_config;
using testing::tiny_files;
using testing::TrainingRun;

RunConfig constant_rate_config(std::int64_t steps) {
  RunConfig config = tiny_config(tiny_files());
  config.lr_scheduler_type = ScheduleKind::constant;
  config.max_steps = steps;
  return config;
}

// Lines that a run has logged so far.
std::size_t lines_in(const std::filesystem::path& file) {
  std::ifstream lines(file);
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(lines), {}, '\n'));
}

TEST(Trainer, EndsAfterTheCurrentStepOnceToldToStop) {
  RunConfig config = constant_rate_config(5000);
  config.eval_steps = 0;
  TrainingRun stopped(config);
  std::atomic<bool> stop = false;
  std::thread other([&] {
    const auto metrics = stopped.output_dir() / "metrics.jsonl";
    EXPECT_TRUE(testing::comes_true([&] { return lines_in(metrics) >= 3; }));
    stop = true;
  });
  const TrainOutcome outcome = stopped.train(&stop);
  other.join();
  EXPECT_TRUE(outcome.stopped);
  ASSERT_GE(outcome.steps, 2);
  ASSERT_LT(outcome.steps, 5000);
  TrainingRun whole(constant_rate_config(outcome.steps));
  whole.train();
  EXPECT_TRUE(stopped.exported_weights() == whole.exported_weights())
      << "after " << outcome.steps << " steps";
}

TEST(Trainer, DoesNothingWhenToldToStopBeforeItsFirstStep) {
  TrainingRun run(constant_rate_config(3));
  const std::string before = testing::all_state_bytes(run.session());
  const std::atomic<bool> stop = true;
  const TrainOutcome outcome = run.train(&stop);
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(outcome.steps, 0);
  EXPECT_TRUE(testing::all_state_bytes(run.session()) == before);
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
  // Half of the micro-batches, 16 to a step, the last step filled from what follows.
  const std::int64_t micro_batches = (batches.micro_batches_per_epoch() + 1) / 2;
  EXPECT_EQ(run.train().steps, (micro_batches + 15) / 16);
}

// Steps after which a run took the held-out loss, as its metrics have it.
std::vector<std::int64_t> evaluated_steps(const std::filesystem::path& metrics) {
  std::vector<std::int64_t> steps;
  std::ifstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t step = line.find("\"step\":");
    if (line.find("\"eval_loss\"") != std::string::npos && step != std::string::npos)
      steps.push_back(std::stoll(line.substr(step + 7)));
  }
  return steps;
}

TEST(Trainer, EvaluatesAtSharesOfItsLength) {
  RunConfig config = constant_rate_config(10);
  config.eval_steps = 0.25;
  TrainingRun run(config);
  run.train();
  EXPECT_EQ(evaluated_steps(run.output_dir() / "metrics.jsonl"),
            (std::vector<std::int64_t>{0, 3, 6, 9, 10}));
}

TEST(Trainer, EvaluatesAfterEachEpoch) {
  RunConfig config = constant_rate_config(-1);
  config.num_train_epochs = 1.5;
  config.eval_each_epoch = true;
  config.gradient_accumulation_steps = 64;
  TrainingRun run(config);
  const std::int64_t steps = run.train().steps;
  const std::vector<std::int64_t> evaluated = evaluated_steps(run.output_dir() / "metrics.jsonl");
  ASSERT_EQ(evaluated.size(), 3u);
  EXPECT_EQ(evaluated.front(), 0);
  EXPECT_EQ(evaluated.back(), steps);
  EXPECT_NEAR(static_cast<double>(evaluated[1]), static_cast<double>(steps) / 1.5, 1);
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
  EXPECT_TRUE(run.exported_weights() ==
              testing::read_bytes(tiny_files().model / "model.safetensors"));
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
  config.offload.weight_slots = 1;
  const PlannedRun other = plan_run(config, Purpose::train);
  EXPECT_NE(plan_hash(one.program, one.plan), plan_hash(other.program, other.plan));
}

}  // namespace
}  // namespace strata
