// The same data gives the same loss however it is cut into micro-batches and rows. Sums are taken
// in another order, so in fp32 within a tolerance.

#include <gtest/gtest.h>

#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"

namespace strata {
namespace {

using testing::make_training_files;
using testing::Outcome;
using testing::tiny_config;
using testing::train;

constexpr double same_loss_tolerance = 1e-5, same_norm_tolerance = 1e-4;  // relative

RunConfig fp32_config(int documents) {
  RunConfig config = tiny_config(make_training_files(random_model_preset("tiny"), documents));
  config.bf16 = false;
  config.max_steps = 6;
  config.eval_steps = 3;
  return config;
}

void expect_close(const std::vector<double>& expected, const std::vector<double>& got,
                  double tolerance) {
  ASSERT_EQ(expected.size(), got.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], tolerance * expected[i]) << i;
}

void expect_close(const Outcome& expected, const Outcome& got) {
  expect_close(expected.losses, got.losses, same_loss_tolerance);
  expect_close(expected.norms, got.norms, same_norm_tolerance);
  expect_close(expected.held_out, got.held_out, same_loss_tolerance);
}

TEST(Loss, IsTheSameForOneMicroBatchOfEightRowsAsForEightOfOne) {
  RunConfig config = fp32_config(200);
  config.per_device_train_batch_size = 8;
  config.gradient_accumulation_steps = 1;
  const Outcome whole = train(config);
  config.per_device_train_batch_size = 1;
  config.gradient_accumulation_steps = 8;
  const Outcome accumulated = train(config);
  expect_close(whole, accumulated);
  EXPECT_LT(whole.losses.back(), whole.losses.front());
}

TEST(Loss, CountsEachTrainedTokenOnceWhenMicroBatchesHoldUnequallyMany) {
  RunConfig config = fp32_config(64);
  config.layout =
      RowLayout::separate;  // documents of 20 to 79 tokens: rows of 80 with as many trained tokens
  config.cutoff_len = 80;
  config.per_device_train_batch_size = 8;
  config.gradient_accumulation_steps = 1;
  const Outcome whole = train(config);
  config.per_device_train_batch_size = 1;
  config.gradient_accumulation_steps = 8;
  expect_close(whole, train(config));
}

TEST(Loss, IsTheSameForPackedAsForSeparateDocuments) {
  RunConfig config = fp32_config(8);
  config.cutoff_len = 80;
  config.per_device_train_batch_size = 8;  // one step sees all documents, in either layout
  config.gradient_accumulation_steps = 1;
  config.layout = RowLayout::separate;
  const Outcome separate = train(config);
  config.layout = RowLayout::packed;
  expect_close(separate, train(config));
}

}  // namespace
}  // namespace strata
