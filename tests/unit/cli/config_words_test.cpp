// Words of other programs that mean something here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strata/cli/config.hpp"
#include "strata/core/error.hpp"
#include "unit/cli/config_texts.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

TEST(ConfigWords, ComputesOnTheHostWhereTransformersWould) {
  for (const char* yaml : {"use_cpu: true", "no_cuda: yes"}) {
    const RunConfig config = parse(yaml);
    EXPECT_EQ(config.device, DeviceKind::cpu) << yaml;
    EXPECT_EQ(origin(config, "device"), "run.yaml:1") << yaml;
  }
  EXPECT_EQ(parse("use_cpu: false").device, DeviceKind::automatic);
  EXPECT_EQ(parse("no_cuda: false\ndevice: gpu").device, DeviceKind::gpu);
  EXPECT_THAT(error_of("device: gpu\nuse_cpu: true"), HasSubstr("'use_cpu'"));
}

TEST(ConfigWords, SearchesForRatiosWhenTheyAreAuto) {
  EXPECT_TRUE(parse("offload: {ratio: auto}").offload.automatic);
  EXPECT_TRUE(parse("", {"offload.ratio=auto"}).offload.automatic);
  EXPECT_THAT(error_of("offload.ratio: 0.5"), HasSubstr("offload.auto: true"));
}

TEST(ConfigWords, SuggestsNoNameThatItWouldRefuse) {
  for (const char* yaml : {"no_cudaa: true", "tf23: 1", "tempalte: qwen", "base_modl: x"})
    EXPECT_THAT(error_of(yaml), HasSubstr("docs/config.md lists all keys")) << yaml;
  EXPECT_THAT(error_of("warmup_ratoi: 0.1"), HasSubstr("did you mean 'warmup_steps'?"));
}

TEST(ConfigWords, TakeStepsBelowOneForSharesOfAll) {
  const RunConfig config = parse("save_steps: 0.25\neval_steps: 0.1\nlogging_steps: 0.01");
  EXPECT_EQ(config.save_steps, 0.25);
  EXPECT_EQ(config.eval_steps, 0.1);
  EXPECT_EQ(config.logging_steps, 0.01);
  for (const char* key : {"save_steps", "eval_steps", "logging_steps", "warmup_steps"})
    EXPECT_THAT(error_of(std::string(key) + ": 2.5"), HasSubstr("neither a whole number")) << key;
  for (const char* key : {"save_steps", "logging_steps"})
    EXPECT_THAT(error_of(std::string(key) + ": 0"), HasSubstr("is not a number > 0")) << key;
}

TEST(ConfigWords, EvaluateByStepsOrEpochs) {
  EXPECT_FALSE(parse("eval_strategy: \"no\"").evaluate);
  const RunConfig by_steps = parse("eval_strategy: steps\neval_dataset: e");
  EXPECT_TRUE(by_steps.evaluate && !by_steps.eval_each_epoch);
  const RunConfig by_epochs = parse("eval_strategy: epoch\neval_dataset: e");
  EXPECT_TRUE(by_epochs.evaluate && by_epochs.eval_each_epoch);
}

TEST(ConfigWords, GiveCosineItsFloorAsARateOrAShare) {
  const std::string cosine = "lr_scheduler_type: cosine_with_min_lr\nlr_scheduler_kwargs: ";
  EXPECT_EQ(parse(cosine + "{min_lr: 1e-6}").lr_min, 1e-6);
  const RunConfig share = parse(cosine + "{min_lr_rate: 0.2}");
  EXPECT_EQ(share.lr_min_ratio, 0.2);
  EXPECT_TRUE(share.warnings.empty());
  EXPECT_THAT(error_of(cosine + "{min_lr_rate: 0.2, min_lr: 1e-6}"), HasSubstr("contradicts"));
  EXPECT_THAT(error_of(cosine + "{min_lr: 1}"), HasSubstr("is above learning_rate"));
  EXPECT_THAT(error_of(cosine + "{}"), HasSubstr("needs lr_scheduler_kwargs.min_lr"));
  EXPECT_THAT(error_of("lr_scheduler_kwargs: {min_lr: 1e-6}"), HasSubstr("only with"));
}

TEST(ConfigWords, ShapePolynomialAndInverseSqrt) {
  const RunConfig square =
      parse("lr_scheduler_type: polynomial\nlr_scheduler_kwargs: {power: 2, lr_end: 1e-6}");
  EXPECT_EQ(square.lr_power, 2);
  EXPECT_EQ(square.lr_end, 1e-6);
  EXPECT_THAT(error_of("lr_scheduler_type: polynomial\nlearning_rate: 1e-8"),
              HasSubstr("is not above 1e-07"));
  EXPECT_EQ(
      parse("lr_scheduler_type: inverse_sqrt\nlr_scheduler_kwargs.timescale: 50").lr_timescale, 50);
  EXPECT_THAT(error_of("lr_scheduler_kwargs: {power: 2}"), HasSubstr("only with"));
}

}  // namespace
}  // namespace strata
