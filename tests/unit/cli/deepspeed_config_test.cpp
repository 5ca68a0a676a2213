// DeepSpeed configs are said in the words of this program, or refused by name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "src/cli/run_options.hpp"
#include "strata/cli/config.hpp"
#include "strata/core/error.hpp"
#include "support/own_path.hpp"
#include "unit/cli/config_texts.hpp"

namespace strata {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr ConfigTexts parse_deepspeed{"ds.json"};
constexpr ConfigErrors deepspeed_error_of{"ds.json"};

std::string written(const std::string& name, const std::string& text) {
  static const OwnFolder folder("deepspeed");
  const std::string path = folder / (name + ".json");
  std::ofstream(path) << text;
  return path;
}

// What people have beside transformers: all that may be is left to its words.
constexpr const char* automatic = R"({
  "fp16": {"enabled": "auto", "loss_scale": 0, "initial_scale_power": 16},
  "bf16": {"enabled": "auto"},
  "optimizer": {
    "type": "AdamW",
    "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}
  },
  "scheduler": {
    "type": "WarmupDecayLR",
    "params": {
      "total_num_steps": "auto", "warmup_min_lr": "auto", "warmup_max_lr": "auto",
      "warmup_num_steps": "auto", "warmup_type": "linear"
    }
  },
  "zero_optimization": {
    "stage": 3,
    "offload_optimizer": {"device": "nvme", "nvme_path": "/mnt/a", "pin_memory": true,
                          "buffer_count": 4, "ratio": 0.75},
    "offload_param": {"device": "cpu", "pin_memory": true, "buffer_size": 1e8},
    "overlap_comm": true, "contiguous_gradients": true, "sub_group_size": 1e9,
    "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
    "stage3_gather_16bit_weights_on_model_save": true
  },
  "aio": {"block_size": 1048576, "queue_depth": 8, "single_submit": false},
  "gradient_accumulation_steps": "auto",
  "gradient_clipping": "auto",
  "train_batch_size": "auto",
  "train_micro_batch_size_per_gpu": "auto",
  "steps_per_print": 2000,
  "wall_clock_breakdown": false
})";

TEST(DeepSpeedConfig, BesideTheWordsOfTransformersPlacesState) {
  const std::string path = written("beside", automatic);
  const RunConfig config =
      parse_deepspeed("learning_rate: 1e-5\nmax_grad_norm: 0.5\ndeepspeed: " + path);
  EXPECT_EQ(config.learning_rate, 1e-5);
  EXPECT_EQ(config.max_grad_norm, 0.5);
  EXPECT_EQ(config.zero_stage, 3);
  EXPECT_EQ(config.lr_scheduler_type, ScheduleKind::linear);
  for (const TierFractions* role :
       {&config.offload.master, &config.offload.moment1, &config.offload.moment2})
    expect_tiers(*role, {0.25, 0, 0.75});
  expect_tiers(config.offload.weights, {0, 1, 0});
  expect_tiers(config.offload.gradients, {0, 1, 0});
  expect_tiers(config.offload.activations, {1, 0, 0});
  EXPECT_THAT(config.offload.nvme_paths, ElementsAre("/mnt/a"));
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(DeepSpeedConfig, TellsWhatEachKeyBecame) {
  const RunConfig config = parse_deepspeed(automatic);
  EXPECT_THAT(config.notes,
              Contains("gradient_clipping in ds.json:26: auto, as max_grad_norm says"));
  EXPECT_THAT(config.notes,
              Contains("zero_optimization.offload_param.device in ds.json:19 is offload.weights: "
                       "{device: cpu}"));
  EXPECT_THAT(config.notes, Contains(HasSubstr("without effect here: ")));
  EXPECT_THAT(config.notes, Contains(HasSubstr("aio.block_size")));
  EXPECT_THAT(config.notes,
              Contains(HasSubstr("cpu_checkpointing is not given: as there, offload.activations: "
                                 "gpu")));
  EXPECT_EQ(origin(config, "zero_optimization.stage"),
            "ds.json:16, DeepSpeed's zero_optimization.stage");
  EXPECT_EQ(origin(config, "offload.activations"), "ds.json, DeepSpeed's default");
}

TEST(DeepSpeedConfig, IsAConfigItself) {
  const RunConfig config = parse_deepspeed(R"({
    "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8, "train_batch_size": 32,
    "gradient_clipping": 0.25, "bf16": {"enabled": true}, "fp16": {"enabled": false},
    "optimizer": {"type": "Adam", "params": {"lr": 2e-5, "betas": [0.8, 0.95], "eps": 1e-6,
                                             "weight_decay": 0.01}},
    "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 500,
                  "warmup_num_steps": 50, "cos_min_ratio": 0.1, "warmup_type": "linear"}},
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}
  })",
                                           {"model_name_or_path=m", "seed=7"});
  EXPECT_EQ(config.per_device_train_batch_size, 4);
  EXPECT_EQ(config.gradient_accumulation_steps, 8);
  EXPECT_EQ(config.train_batch_size, 32);
  EXPECT_EQ(config.max_grad_norm, 0.25);
  EXPECT_TRUE(config.bf16);
  EXPECT_EQ(config.optim, UpdateRule::adamw) << "DeepSpeed's Adam decays as AdamW does";
  EXPECT_EQ(config.learning_rate, 2e-5);
  EXPECT_EQ(config.adam_beta1, 0.8);
  EXPECT_EQ(config.adam_beta2, 0.95);
  EXPECT_EQ(config.adam_epsilon, 1e-6);
  EXPECT_EQ(config.weight_decay, 0.01);
  EXPECT_EQ(config.lr_scheduler_type, ScheduleKind::cosine);
  EXPECT_EQ(config.lr_min_ratio, 0.1);
  EXPECT_EQ(config.max_steps, 500);
  EXPECT_EQ(config.warmup_steps, 50);
  EXPECT_EQ(config.zero_stage, 2);
  EXPECT_EQ(config.seed, 7u);
  expect_tiers(config.offload.moment1, {0, 1, 0});
  expect_tiers(config.offload.weights, {1, 0, 0});
}

TEST(DeepSpeedConfig, IsPrintedInTheWordsOfThisProgram) {
  const RunConfig config = parse_deepspeed(automatic),
                  again = parse_deepspeed(format_config(config));
  ASSERT_EQ(again.resolved.size(), config.resolved.size());
  for (std::size_t i = 0; i < config.resolved.size(); ++i)
    EXPECT_EQ(again.resolved[i].value, config.resolved[i].value) << config.resolved[i].key;
  EXPECT_THAT(again.notes, IsEmpty());
}

TEST(DeepSpeedConfig, IsReadInline) {
  const RunConfig config = parse_deepspeed(
      "deepspeed:\n  zero_optimization: {stage: 1, offload_optimizer: {device: none}}\n");
  EXPECT_EQ(config.zero_stage, 1);
  expect_tiers(config.offload.master, {1, 0, 0});
  expect_tiers(config.offload.gradients, {1, 0, 0});
}

TEST(DeepSpeedConfig, WithoutAStageSlicesNothing) {
  EXPECT_EQ(parse_deepspeed("deepspeed: {zero_optimization: {overlap_comm: true}}").zero_stage, 0);
}

TEST(DeepSpeedConfig, PlacesNothingWhereItSaysNothingOfZero) {
  const RunConfig config = parse_deepspeed("train_micro_batch_size_per_gpu: 2");
  EXPECT_EQ(config.per_device_train_batch_size, 2);
  expect_tiers(config.offload.weights, {0, 1, 0});
}

TEST(DeepSpeedConfig, LeavesOpenToASearchWhatItDoesNotSay) {
  const RunConfig config = parse_deepspeed(
      "zero_optimization: {stage: 3, offload_optimizer: {device: cpu}}\noffload.auto: true");
  EXPECT_EQ(origin(config, "offload.weights"), "default");
  EXPECT_NE(origin(config, "offload.master"), "default");
}

TEST(DeepSpeedConfig, NamesBothDrivesOnce) {
  const auto paths = [](const std::string& second) {
    return parse_deepspeed(
               "zero_optimization: {stage: 3, offload_optimizer: {device: nvme, nvme_path: /a}, "
               "offload_param: {device: nvme, nvme_path: " +
               second + "}}")
        .offload.nvme_paths;
  };
  EXPECT_THAT(paths("/a"), ElementsAre("/a"));
  EXPECT_THAT(paths("/b"), ElementsAre("/a", "/b"));
}

TEST(DeepSpeedConfig, MustAgreeWithTheConfigItIsIn) {
  const std::string text =
      deepspeed_error_of("max_grad_norm: 1.0\ndeepspeed: {gradient_clipping: 0.5}");
  EXPECT_EQ(text,
            "'gradient_clipping' in ds.json:2 is 0.5, but 'max_grad_norm' in ds.json:1 is 1: "
            "make them alike, or leave one out");
  EXPECT_EQ(parse_deepspeed("max_grad_norm: 1.0\ndeepspeed: {gradient_clipping: 1}").max_grad_norm,
            1);
  EXPECT_EQ(
      parse_deepspeed("deepspeed: {gradient_clipping: 0.5}", {"max_grad_norm=2"}).max_grad_norm, 2)
      << "the command line wins";
  EXPECT_THAT(
      deepspeed_error_of("offload.optimizer: cpu\nzero_optimization: {offload_optimizer: {device: "
                         "none}}"),
      HasSubstr("'offload.optimizer' in ds.json:1 is {gpu: 0, cpu: 1, nvme: 0}"));
  EXPECT_EQ(parse_deepspeed("optim: adamw_torch\ndeepspeed: {optimizer: {type: AdamW}}").optim,
            UpdateRule::adamw)
      << "two names of one";
}

TEST(DeepSpeedConfig, TellsOfABadValueOnce) {
  EXPECT_EQ(deepspeed_error_of("max_grad_norm: small\ndeepspeed: {gradient_clipping: 0.5}"),
            "max_grad_norm in ds.json:1: 'small' is not a number >= 0");
}

TEST(DeepSpeedConfig, CanBeLeftOutOnTheCommandLine) {
  const RunConfig config =
      parse_deepspeed("deepspeed: {gradient_clipping: 0.5}", {"deepspeed=null", "max_grad_norm=3"});
  EXPECT_THAT(config.notes, IsEmpty());
  EXPECT_EQ(config.max_grad_norm, 3);
}

TEST(DeepSpeedConfig, IsRefusedByNameWithAllReasonsAtOnce) {
  const std::string text = deepspeed_error_of(R"({
  "train_micro_batch_size_per_gpu": 1,
  "fp16": {"enabled": true},
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-5}},
  "scheduler": {"type": "OneCycle"},
  "zero_optimization": {"stage": 3, "zero_quantized_weights": true, "stag3_x": 1},
  "wandb": {"enabled": true, "team": "t"}
})");
  EXPECT_THAT(text, HasSubstr("6 settings cannot be taken"));
  EXPECT_THAT(text, HasSubstr("'fp16.enabled: true' in ds.json:3 is not supported: fp16 needs"));
  EXPECT_THAT(text, HasSubstr("'optimizer.type: OneBitAdam' in ds.json:4"));
  EXPECT_THAT(text, HasSubstr("'scheduler.type: OneCycle' in ds.json:5"));
  EXPECT_THAT(text, HasSubstr("zero_optimization.zero_quantized_weights: true"));
  EXPECT_THAT(text, HasSubstr("unknown DeepSpeed key 'zero_optimization.stag3_x'"));
  EXPECT_THAT(text, HasSubstr("wandb.enabled"));
  EXPECT_THAT(deepspeed_error_of("deepspeed: {gradient_cliping: 1}"),
              HasSubstr("did you mean 'gradient_clipping'?"));
}

TEST(DeepSpeedConfig, WarnsOfItsOwnWarmUp) {
  const RunConfig config =
      parse_deepspeed("scheduler: {type: WarmupLR, params: {warmup_num_steps: 10}}");
  EXPECT_EQ(config.lr_scheduler_type, ScheduleKind::constant_with_warmup);
  EXPECT_THAT(config.warnings, ElementsAre(HasSubstr("the warm-up here is linear")));
  EXPECT_EQ(parse_deepspeed("scheduler: {type: WarmupLR}").warmup_steps, 1000)
      << "DeepSpeed's default";
}

TEST(DeepSpeedConfig, ThatCannotBeReadIsNamed) {
  EXPECT_THAT(deepspeed_error_of("deepspeed: no-such-file.json"), HasSubstr("no-such-file.json"));
  EXPECT_THAT(deepspeed_error_of("deepspeed: " + written("list", "[1]")),
              HasSubstr("is not a table"));
  EXPECT_THAT(deepspeed_error_of("bf16: {enabled: true}\ndeepspeed: x.json"), HasSubstr("second"));
}

TEST(DeepSpeedConfig, ChecksTheBatchOfAllRanks) {
  RunConfig config = parse_deepspeed(
      "{train_batch_size: 32, train_micro_batch_size_per_gpu: 2, "
      "gradient_accumulation_steps: 4}");
  EXPECT_NO_THROW(check_train_batch_size(config, 4));
  try {
    check_train_batch_size(config, 2);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("x 2 ranks, which is 16"));
  }
  config.train_batch_size.reset();
  EXPECT_NO_THROW(check_train_batch_size(config, 3));
}

}  // namespace
}  // namespace strata
