// A gradient that is not finite is never applied and never passed over in silence.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "sim/session_state.hpp"
#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"
#include "support/weights_file.hpp"

namespace strata {
namespace {

using testing::all_state_bytes;
using testing::make_training_files;
using testing::overwrite_weights;
using testing::place_randomly;
using testing::tiny_config;
using testing::TrainingFiles;
using testing::TrainingRun;

constexpr float huge = 3e38f;

// A model whose logits overflow for every token.
RunConfig overflowing_config() {
  const TrainingFiles files = make_training_files(random_model_preset("tiny"), 60);
  overwrite_weights(files.model, "lm_head.weight", 0, 64, huge);
  RunConfig config = tiny_config(files);
  config.bf16 = false;
  config.evaluate = false;
  config.max_steps = 5;
  place_randomly(config, 3);
  return config;
}

TEST(NonFiniteGradient, StopsTheRunWithAClearErrorAndUnchangedState) {
  RunConfig config = overflowing_config();
  config.non_finite = NonFinitePolicy::stop;
  TrainingRun run(config);
  const std::string before = all_state_bytes(run.session());
  const TrainOutcome outcome = run.train();
  EXPECT_EQ(outcome.steps, 1);
  EXPECT_FALSE(outcome.stopped);
  const std::string& text = outcome.failure;
  EXPECT_NE(text.find("step 1"), std::string::npos) << text;
  EXPECT_NE(text.find("not finite"), std::string::npos) << text;
  EXPECT_NE(text.find("weights of model_name_or_path"), std::string::npos) << text;
  EXPECT_TRUE(all_state_bytes(run.session()) == before);
}

TEST(NonFiniteGradient, IsSkippedCountedAndLoggedWhenAskedFor) {
  RunConfig config = overflowing_config();
  config.non_finite = NonFinitePolicy::skip_step;
  TrainingRun run(config);
  const std::string before = all_state_bytes(run.session());
  const TrainOutcome outcome = run.train();
  EXPECT_EQ(outcome.steps, 5);
  EXPECT_EQ(outcome.skipped_steps, 5);
  EXPECT_NE(outcome.failure.find("none of the 5 steps was applied"), std::string::npos)
      << outcome.failure;
  EXPECT_TRUE(all_state_bytes(run.session()) == before);
  for (const double norm : run.outcome().norms) EXPECT_FALSE(std::isfinite(norm));
}

TEST(NonFiniteGradient, ThatComesOfTrainingIsToldFromOneThatWasThereBefore) {
  RunConfig config = tiny_config(make_training_files(random_model_preset("tiny"), 60));
  config.bf16 = config.evaluate = false;
  config.learning_rate = 1e30;
  config.warmup_steps = 0;
  config.non_finite = NonFinitePolicy::stop;
  const std::string text = TrainingRun(config).train().failure;
  EXPECT_NE(text.find("Lower learning_rate, or set non_finite: skip_step"), std::string::npos)
      << text;
}

TEST(NonFiniteGradient, EndsARunThatUpdatesDuringBackward) {
  RunConfig config = overflowing_config();
  config.max_grad_norm = 0;
  config.offload.update_order = "during_backward";
  TrainingRun run(config);
  EXPECT_THROW(run.train(), Error);
}

// One micro-batch per step of a Session, with the loss scale to be chosen.
class Steps {
 public:
  Steps(const RunConfig& config, Session& session) : session_(session) {
    std::vector<TokenShard> shards;
    shards.emplace_back(config.dataset.front());
    batches_ = std::make_unique<Batches>(std::move(shards),
                                         BatchOptions{.sequence_length = config.cutoff_len});
  }
  StepResult run(std::int64_t data, std::int64_t step, double scale) {
    const auto slot = static_cast<std::size_t>(index_ % 3);
    inputs_[slot].resize(static_cast<std::size_t>(3 * batches_->tokens_per_micro_batch()));
    batches_->fill(data, inputs_[slot]);
    args_[slot].index = index_++;
    args_[slot].inputs = {std::as_bytes(std::span(inputs_[slot]))};
    args_[slot].loss_scale = scale;
    args_[slot].hyper = {step, 1e-3f, 0.5f};
    session_.executor().submit("train", args_[slot]);
    return session_.executor().wait_result();
  }

 private:
  Session& session_;
  std::unique_ptr<Batches> batches_;
  std::array<std::vector<std::int32_t>, 3> inputs_;
  std::array<StepArgs, 3> args_;
  std::int64_t index_ = 0;
};

// Whole masters with fp32 moments, and split ones with 8 bits.
class NonFiniteStep : public ::testing::TestWithParam<MasterFormat> {};
INSTANTIATE_TEST_SUITE_P(States, NonFiniteStep,
                         ::testing::Values(MasterFormat::f32, MasterFormat::split),
                         [](const auto& chosen) {
                           return chosen.param == MasterFormat::f32 ? "Fp32" : "SplitQ8";
                         });

TEST_P(NonFiniteStep, LeavesNoTraceInTheStepsAfterIt) {
  RunConfig config = tiny_config(make_training_files(random_model_preset("tiny"), 60));
  config.gradient_accumulation_steps = 1;
  config.evaluate = false;
  config.non_finite = NonFinitePolicy::skip_step;
  config.optimizer_master = GetParam();
  config.optimizer_moments = GetParam() == MasterFormat::split ? DType::q8 : DType::f32;
  place_randomly(config, 5);
  constexpr double scale = 1.0 / 31;
  TrainingRun disturbed(config), calm(config);
  Steps with(config, disturbed.session()), without(config, calm.session());
  EXPECT_TRUE(with.run(0, 1, scale).applied);
  const StepResult bad = with.run(1, 2, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(bad.finite);
  EXPECT_FALSE(bad.applied);
  const StepResult after = with.run(2, 2, scale);
  without.run(0, 1, scale);
  const StepResult expected = without.run(2, 2, scale);
  EXPECT_EQ(after.loss, expected.loss);
  EXPECT_EQ(after.grad_norm, expected.grad_norm);
  EXPECT_TRUE(all_state_bytes(disturbed.session()) == all_state_bytes(calm.session()));
}

TEST(NonFiniteGradient, OfOneDocumentSkipsOnlyTheStepThatMeetsIt) {
  RunConfig config = tiny_config(testing::poisoned_files(40));
  config.layout = RowLayout::separate;
  config.cutoff_len = 64;
  config.non_finite = NonFinitePolicy::skip_step;
  config.gradient_accumulation_steps = 3;
  config.max_steps = 14;  // 42 rows: one epoch of the 41 documents
  TrainingRun run(config);
  const TrainOutcome outcome = run.train();
  EXPECT_EQ(outcome.skipped_steps, 1);
  EXPECT_LT(outcome.held_out_after.loss, outcome.held_out_before.loss);
}

}  // namespace
}  // namespace strata
