#include "strata/cli/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "strata/core/error.hpp"
#include "strata/train/planned_run.hpp"
#include "support/own_path.hpp"
#include "unit/cli/config_texts.hpp"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Config, HasDefaultsWhenEmpty) {
  const RunConfig config = parse("");
  EXPECT_EQ(config.learning_rate, 5e-5);
  EXPECT_EQ(config.max_steps, -1);
  EXPECT_TRUE(config.bf16);
  EXPECT_EQ(config.offload.master.host, 1);
  EXPECT_EQ(origin(config, "learning_rate"), "default");
}

TEST(Config, ReadsWhatComputes) {
  EXPECT_EQ(parse("").device, DeviceKind::automatic);
  EXPECT_EQ(parse("device: auto").device, DeviceKind::automatic);
  EXPECT_EQ(parse("device: gpu").device, DeviceKind::gpu);
  EXPECT_EQ(parse("device: cuda").device, DeviceKind::gpu);
  EXPECT_EQ(parse("device: cpu").device, DeviceKind::cpu);
}

TEST(Config, RefusesTheReferenceOnAGpu) {
  EXPECT_THAT(error_of("{device: gpu, kernels: ref}"), HasSubstr("kernels: ref contradicts"));
  EXPECT_EQ(parse("kernels: ref").device, DeviceKind::automatic) << "the host is meant";
}

TEST(Config, ReadsEveryKindOfValueIntoItsField) {
  const RunConfig config = parse(R"(
model_name_or_path: models/small
dataset: [a.tok, b.tok]
eval_dataset: held-out.tok
packing: true
learning_rate: 1e-5
max_steps: 2e2
warmup_steps: 0.1
lr_scheduler_type: cosine
lr_scheduler_kwargs: {min_lr_ratio: 0.1, num_cycles: 0.25}
bf16: false
seed: 18446744073709551615
data_seed: 7
eval_strategy: steps
non_finite: skip_step
kernels: ref
offload:
  gpu_limit: 256MiB
  cpu_limit: 2e9
  nvme_paths: [/mnt/a, /mnt/b]
  nvme_weights: [3.5, 7]
  weight_slots: 5
  io_engine: threads
  io_stall_seconds: 0.5
  verify_nvme: true
)");
  EXPECT_EQ(config.model_name_or_path, "models/small");
  EXPECT_THAT(config.dataset, ElementsAre("a.tok", "b.tok"));
  EXPECT_THAT(config.eval_dataset, ElementsAre("held-out.tok"));
  EXPECT_EQ(config.layout, RowLayout::packed);
  EXPECT_EQ(config.learning_rate, 1e-5);
  EXPECT_EQ(config.max_steps, 200);
  EXPECT_EQ(config.warmup_steps, 0.1);
  EXPECT_EQ(config.lr_scheduler_type, ScheduleKind::cosine);
  EXPECT_EQ(config.lr_min_ratio, 0.1);
  EXPECT_EQ(config.lr_num_cycles, 0.25);
  EXPECT_FALSE(config.bf16);
  EXPECT_EQ(config.seed, ~std::uint64_t{0});
  EXPECT_EQ(config.data_seed, 7u);
  EXPECT_TRUE(config.evaluate);
  EXPECT_EQ(config.non_finite, NonFinitePolicy::skip_step);
  EXPECT_EQ(config.kernels, KernelsKind::ref);
  EXPECT_EQ(config.offload.gpu_limit, 256u << 20);
  EXPECT_EQ(config.offload.cpu_limit, 2'000'000'000u);
  EXPECT_THAT(config.offload.nvme_paths, ElementsAre("/mnt/a", "/mnt/b"));
  EXPECT_THAT(config.offload.nvme_weights, ElementsAre(3.5, 7));
  EXPECT_EQ(config.offload.weight_slots, 5);
  EXPECT_EQ(config.offload.io_engine, "threads");
  EXPECT_EQ(config.offload.io_stall_seconds, 0.5);
  EXPECT_TRUE(config.offload.verify_nvme);
}

TEST(Config, ReadsEveryNumberIntoItsOwnField) {
  const RunConfig config = parse(R"(
cutoff_len: 11
per_device_train_batch_size: 12
per_device_eval_batch_size: 13
gradient_accumulation_steps: 14
num_train_epochs: 1.5
weight_decay: 0.01
adam_beta1: 0.8
adam_beta2: 0.95
adam_epsilon: 1e-6
max_grad_norm: 0.5
lr_scheduler_type: warmup_stable_decay
lr_scheduler_kwargs.num_decay_steps: 15
logging_steps: 16
eval_steps: 17
compute_threads: 18
update_threads: 19
offload: {gradient_slots: 20, activation_slots: 21, state_slots: 22, staging_slots: 23, io_queue_depth: 24,
          tile_bytes: 32KiB}
)");
  EXPECT_EQ(config.cutoff_len, 11);
  EXPECT_EQ(config.per_device_train_batch_size, 12);
  EXPECT_EQ(config.per_device_eval_batch_size, 13);
  EXPECT_EQ(config.gradient_accumulation_steps, 14);
  EXPECT_EQ(config.num_train_epochs, 1.5);
  EXPECT_EQ(config.weight_decay, 0.01);
  EXPECT_EQ(config.adam_beta1, 0.8);
  EXPECT_EQ(config.adam_beta2, 0.95);
  EXPECT_EQ(config.adam_epsilon, 1e-6);
  EXPECT_EQ(config.max_grad_norm, 0.5);
  EXPECT_EQ(config.lr_decay_steps, 15);
  EXPECT_EQ(config.logging_steps, 16);
  EXPECT_EQ(config.eval_steps, 17);
  EXPECT_EQ(config.compute_threads, 18);
  EXPECT_EQ(config.update_threads, 19);
  EXPECT_EQ(config.offload.gradient_slots, 20);
  EXPECT_EQ(config.offload.activation_slots, 21);
  EXPECT_EQ(config.offload.state_slots, 22);
  EXPECT_EQ(config.offload.staging_slots, 23);
  EXPECT_EQ(config.offload.io_queue_depth, 24);
  EXPECT_EQ(config.offload.tile_bytes, 32u << 10);
}

TEST(Config, ReadsJson) {
  const RunConfig config =
      parse(R"({"learning_rate": 2e-5, "offload": {"gpu_limit": "64MiB"}, "bf16": false})");
  EXPECT_EQ(config.learning_rate, 2e-5);
  EXPECT_EQ(config.offload.gpu_limit, 64u << 20);
  EXPECT_FALSE(config.bf16);
}

TEST(Config, LetsTheCommandLineWinAndRecordsOrigins) {
  const RunConfig config =
      parse("learning_rate: 1e-5\nmax_steps: 5\n", {"learning_rate=3e-5", "--seed=1"});
  EXPECT_EQ(config.learning_rate, 3e-5);
  EXPECT_EQ(config.seed, 1u);
  EXPECT_EQ(origin(config, "learning_rate"), "command line");
  EXPECT_EQ(origin(config, "seed"), "command line");
  EXPECT_EQ(origin(config, "max_steps"), "run.yaml:2");
  EXPECT_EQ(origin(config, "weight_decay"), "default");
}

TEST(Config, TakesNullAsTheDefault) {
  const RunConfig config =
      parse("data_seed: null\nmax_steps: 5\nlr_scheduler_kwargs:\n", {"max_steps=null"});
  EXPECT_FALSE(config.data_seed.has_value());
  EXPECT_EQ(config.max_steps, -1);
  EXPECT_EQ(origin(config, "max_steps"), "default");
}

TEST(Config, NamesTheNearestKeyWhenOneIsUnknown) {
  EXPECT_EQ(error_of("bf16: true\n\n\nlearning_rat: 1\n"),
            "unknown key 'learning_rat' in run.yaml:4: did you mean 'learning_rate'?");
  EXPECT_THAT(
      error_of("offload:\n  optimiser: nvme\n"),
      HasSubstr(
          "unknown key 'offload.optimiser' in run.yaml:2: did you mean 'offload.optimizer'?"));
  EXPECT_THAT(error_of("", {"offload.gpu_limt=1MiB"}),
              HasSubstr("did you mean 'offload.gpu_limit'?"));
  EXPECT_THAT(error_of("zzzzzzzz: 1\n"), HasSubstr("docs/config.md lists all keys"));
}

TEST(Config, RefusesAKeyThatIsSetTwice) {
  EXPECT_THAT(error_of("max_steps: 1\nmax_steps: 2\n"),
              HasSubstr("'max_steps' in run.yaml:2 is set twice"));
  EXPECT_THAT(error_of("eval_strategy: \"no\"\nevaluation_strategy: steps\n"),
              HasSubstr("already set"));
}

TEST(Config, RefusesWhatIsNotATableOfKeys) {
  EXPECT_THAT(error_of("- a\n- b\n"), HasSubstr("is not a table"));
  EXPECT_THAT(error_of("a: [1\n"), HasSubstr("is not YAML"));
  EXPECT_THAT(error_of("a: 1\n---\nb: 2\n"), HasSubstr("more than one YAML document"));
  EXPECT_THAT(error_of("offload: nvme\n"), HasSubstr("'offload' in run.yaml:1 is a table of keys"));
  EXPECT_THAT(error_of("", {"learning_rate"}), HasSubstr("is not key=value"));
  EXPECT_THAT(error_of("", {"=1"}), HasSubstr("is not key=value"));
  EXPECT_THAT(error_of(std::string(5 << 20, '#')), HasSubstr("a config has at most"));
  EXPECT_NE(error_of(std::string(100000, '[')), "no error");
}

struct BadValue {
  const char* yaml;
  const char* message;
};
class ConfigRange : public ::testing::TestWithParam<BadValue> {};

TEST_P(ConfigRange, IsCheckedAndNamed) {
  EXPECT_THAT(error_of(GetParam().yaml), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Values, ConfigRange,
    ::testing::Values(BadValue{"per_device_train_batch_size: 0",
                               "in run.yaml:1: '0' is not an integer >= 1"},
                      BadValue{"gradient_accumulation_steps: -1", "is not an integer >= 1"},
                      BadValue{"gradient_accumulation_steps: 1.5", "is not an integer >= 1"},
                      BadValue{"adam_beta1: 1", "is not a number >= 0, < 1"},
                      BadValue{"adam_beta2: -0.1", "is not a number >= 0, < 1"},
                      BadValue{"learning_rate: -1e-5", "is not a number >= 0"},
                      BadValue{"learning_rate: .nan", "is not a number >= 0"},
                      BadValue{"learning_rate: 1e-5x", "is not a number >= 0"},
                      BadValue{"learning_rate: [1]", "expected one value"},
                      BadValue{"num_train_epochs: 0", "is not a number > 0"},
                      BadValue{"bf16: maybe", "expected true or false"},
                      BadValue{"max_steps: 0", "max_steps: 0 trains nothing"},
                      BadValue{"seed: -1", "is not an integer >= 0"},
                      BadValue{"offload.gpu_limit: 3 apples", "offload.gpu_limit in run.yaml:1"},
                      BadValue{"offload.gpu_limit: 0", "a size above 0"},
                      BadValue{"offload.tile_bytes: 5000", "not a multiple of"},
                      BadValue{"offload.nvme_weights: [1, 0]", "'0' is not a number > 0"},
                      BadValue{"offload.nvme_weights: [1, fast]", "'fast' is not a number > 0"},
                      BadValue{"offload.nvme_weights: {a: 1}", "expected a list of numbers"},
                      BadValue{"offload.io_stall_seconds: 0", "is not a number > 0"},
                      BadValue{"offload.weight_slots: 0", "is not an integer >= 1, <= 1024"},
                      BadValue{"offload.update_order: before", "'before' is not one of auto"},
                      BadValue{"offload.streamed_updates: 1.5", "is not a number"},
                      BadValue{"offload.streamed_updates: -0.1", "is not a number"},
                      BadValue{"offload.accumulation_group: 0", "is not an integer >= 1"},
                      BadValue{"offload.accumulation_group: sideways",
                               "'sideways' is neither horizontal, vertical nor a number"},
                      BadValue{"zero_optimization: {stage: 4}", "is not an integer >= 0, <= 3"},
                      BadValue{"offload.keep_layers: -1", "is not an integer >= 0"},
                      BadValue{"offload.keep_layers: some", "'some' is neither all nor a number"},
                      BadValue{"kernels: gpu", "'gpu' is not one of cpu, ref"},
                      BadValue{"device: tpu", "'tpu' is not one of auto, gpu, cpu"},
                      BadValue{"dataset: {a: b}", "expected a list"},
                      BadValue{"warmup_steps: 1.5", "neither a whole number"},
                      BadValue{"lr_scheduler_type: stairs", "is not one of"}));

struct Contradiction {
  const char* yaml;
  const char* message;
};
class ConfigContradiction : public ::testing::TestWithParam<Contradiction> {};

TEST_P(ConfigContradiction, IsRefusedNamingBothKeys) {
  EXPECT_THAT(error_of(GetParam().yaml), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Keys, ConfigContradiction,
    ::testing::Values(
        Contradiction{"offload.update_order: during_backward", "contradicts max_grad_norm: 1"},
        Contradiction{
            "offload.update_order: during_backward\nmax_grad_norm: 0\nnon_finite: skip_step",
            "contradicts non_finite: skip_step"},
        Contradiction{"offload.accumulation_group: 3\ngradient_accumulation_steps: 4",
                      "accumulation_group: 3 does not divide gradient_accumulation_steps: 4"},
        Contradiction{"offload.optimizer: nvme",
                      "offload.master puts 100% on nvme, but offload.nvme_paths is empty"},
        Contradiction{"offload.nvme_paths: [/mnt/a, /mnt/a]", "names /mnt/a twice"},
        Contradiction{"offload.nvme_paths: [/mnt/a/, /mnt/../mnt/a]", "names /mnt/../mnt/a twice"},
        Contradiction{"offload: {nvme_paths: [/mnt/a, /mnt/b], nvme_weights: 1}",
                      "offload.nvme_weights has 1 numbers for 2 offload.nvme_paths"},
        Contradiction{"eval_strategy: steps", "needs eval_dataset"},
        Contradiction{"lr_scheduler_type: warmup_stable_decay",
                      "needs lr_scheduler_kwargs.num_decay_steps"},
        Contradiction{"lr_scheduler_type: constant\nwarmup_steps: 10", "use constant_with_warmup"},
        Contradiction{"lr_scheduler_kwargs: {min_lr_ratio: 0.1}",
                      "only with lr_scheduler_type cosine"},
        Contradiction{"optimizer_master: split\nbf16: false",
                      "optimizer_master: split contradicts bf16: false"},
        Contradiction{"sgd_momentum: 0.9", "only with optim: sgd, not adamw"}));

std::string resolved_group(const std::string& yaml) {
  for (const RunConfig::Origin& entry : parse(yaml).resolved)
    if (entry.key == "offload.accumulation_group") return entry.value;
  return "";
}

TEST(Config, ReadsAccumulationGroupsAsWordsAndNumbers) {
  const std::string steps = "gradient_accumulation_steps: 4\noffload.accumulation_group: ";
  const auto group = [&](const std::string& text) {
    return program_variant(parse(steps + text)).accumulation_group;
  };
  EXPECT_EQ(group("horizontal"), 1);
  EXPECT_EQ(group("1"), 1);
  EXPECT_EQ(group("2"), 2);
  EXPECT_EQ(group("4"), 4);
  EXPECT_EQ(group("vertical"), 4);
  EXPECT_EQ(resolved_group(""), "horizontal");
  for (const char* text : {"horizontal", "vertical", "2"})
    EXPECT_EQ(resolved_group(steps + text), text);
}

TEST(Config, ReadsKeptLayersAsANumberOrAll) {
  const auto kept = [](const std::string& yaml) {
    return program_variant(parse(yaml)).kept_layers;
  };
  EXPECT_EQ(kept(""), 0);
  EXPECT_EQ(kept("offload.keep_layers: 12"), 12);
  EXPECT_EQ(kept("offload.keep_layers: all"), all_layers);
  const RunConfig config = parse("offload.keep_layers: all");
  const auto entry =
      std::ranges::find(config.resolved, "offload.keep_layers", &RunConfig::Origin::key);
  ASSERT_NE(entry, config.resolved.end());
  EXPECT_EQ(entry->value, "all");
}

TEST(Config, UpdatesDuringBackwardWhereNothingForbidsIt) {
  EXPECT_EQ(update_order(parse("")), UpdateOrder::deferred);
  EXPECT_EQ(update_order(parse("max_grad_norm: 0")), UpdateOrder::during_backward);
  EXPECT_EQ(update_order(parse("max_grad_norm: 0\nnon_finite: skip_step")), UpdateOrder::deferred);
  EXPECT_EQ(update_order(parse("offload.update_order: after_backward")),
            UpdateOrder::after_backward);
  EXPECT_EQ(update_order(parse("max_grad_norm: 0\noffload.update_order: deferred")),
            UpdateOrder::deferred);
}

TEST(Config, AcceptsDuringBackwardWithoutClipping) {
  EXPECT_EQ(parse("offload.update_order: during_backward\nmax_grad_norm: 0").offload.update_order,
            "during_backward");
}

TEST(Config, AcceptsUnsupportedKeysAtTheValueThatMeansOff) {
  const RunConfig config = parse(R"(
fp16: false
optim: adamw_torch_fused
fsdp: ""
fsdp_config: null
deepspeed: null
load_best_model_at_end: false
label_smoothing_factor: 0.0
group_by_length: false
torch_compile: false
resume_from_checkpoint: null
save_strategy: "no"
report_to: [none]
finetuning_type: full
stage: sft
gradient_checkpointing: true
logging_first_step: true
export_size: 5
export_device: cpu
)");
  EXPECT_TRUE(config.warnings.empty());
}

class ConfigRefusal : public ::testing::TestWithParam<const char*> {};

TEST_P(ConfigRefusal, NamesKeyLineAndReason) {
  EXPECT_THAT(error_of(GetParam()),
              ::testing::MatchesRegex("'.*' in run.yaml:1 is not supported: .{20,}"));
}

INSTANTIATE_TEST_SUITE_P(
    Keys, ConfigRefusal,
    ::testing::Values("fp16: true", "pure_bf16: true", "optim_args: a=1", "fsdp: full_shard",
                      "fsdp_version: 2", "fsdp_config: {a: 1}", "greater_is_better: true",
                      "label_smoothing_factor: 0.1", "group_by_length: true", "torch_compile: true",
                      "ignore_data_skip: true", "save_on_each_node: true", "report_to: wandb",
                      "finetuning_type: lora", "lora_rank: 8", "stage: dpo",
                      "gradient_checkpointing: false", "logging_nan_inf_filter: true",
                      "average_tokens_across_devices: false", "base_model: x", "offload.ratio: 0.5",
                      "export_size: 2", "template: llama3"));

TEST(Config, RefusesSchedulesByNameWithTheReason) {
  EXPECT_THAT(error_of("lr_scheduler_type: reduce_lr_on_plateau"),
              HasSubstr("'reduce_lr_on_plateau' is not supported: "));
  EXPECT_THAT(error_of("eval_strategy: best"), HasSubstr("'best' is not supported: "));
}

TEST(Config, KnowsOptimizersByTransformersNames) {
  EXPECT_EQ(parse("").optim, UpdateRule::adamw);
  for (const char* name : {"adamw", "adamw_torch", "adamw_torch_fused", "paged_adamw_32bit"})
    EXPECT_EQ(parse(std::string("optim: ") + name).optim, UpdateRule::adamw) << name;
  EXPECT_EQ(parse("optim: adam").optim, UpdateRule::adam);
  EXPECT_EQ(parse("optim: lion_32bit").optim, UpdateRule::lion);
  const RunConfig sgd = parse("optim: sgd\nsgd_momentum: 0.9");
  EXPECT_EQ(sgd.optim, UpdateRule::sgd);
  EXPECT_EQ(sgd.sgd_momentum, 0.9);
}

TEST(Config, RefusesOtherOptimizersByNameWithTheReason) {
  const std::pair<const char*, const char*> refusals[] = {
      {"adamw_8bit", "use optim: adamw with optimizer_moments: q8"},
      {"paged_lion_8bit", "use optim: lion with optimizer_moments: q8"},
      {"adafactor", "whole matrices"},
      {"galore_adamw_8bit_layerwise", "whole matrices"},
      {"muon", "whole matrices"},
      {"schedule_free_adamw", "not implemented"}};
  for (const auto& [name, reason] : refusals)
    EXPECT_THAT(
        error_of(std::string("optim: ") + name),
        AllOf(HasSubstr(std::string("'") + name + "' is not supported: "), HasSubstr(reason)));
  EXPECT_THAT(error_of("optim: adamm"), HasSubstr("'adamm' is not one of adamw, adam, sgd, lion"));
}

TEST(Config, ReadsHowOptimizerStateIsKept) {
  const RunConfig config =
      parse("optimizer_master: split\noptimizer_moments: q8\nexport_dtype: fp32");
  EXPECT_EQ(config.optimizer_master, MasterFormat::split);
  EXPECT_EQ(config.optimizer_moments, DType::q8);
  EXPECT_EQ(config.export_dtype, DType::f32);
  EXPECT_EQ(parse("optimizer_moments: 8bit").optimizer_moments, DType::q8);
  EXPECT_FALSE(parse("").export_dtype.has_value());
  EXPECT_THAT(error_of("optimizer_master: bf16"), HasSubstr("use split"));
}

TEST(Config, WarnsOfRenamedKeysAndFollowsThem) {
  const RunConfig config =
      parse("evaluation_strategy: steps\neval_dataset: e\nwarmup_ratio: 0.03\n");
  EXPECT_TRUE(config.evaluate);
  EXPECT_EQ(config.warmup_steps, 0.03);
  EXPECT_THAT(config.warnings,
              ElementsAre("'evaluation_strategy' in run.yaml:1 is now called 'eval_strategy'",
                          "'warmup_ratio' in run.yaml:3 is now called 'warmup_steps'"));
}

TEST(Config, WarnsOfAnEvaluationBatchThatIsNotUsed) {
  EXPECT_THAT(parse("per_device_eval_batch_size: 8").warnings,
              ElementsAre(HasSubstr("per_device_eval_batch_size: 8 is not used")));
  EXPECT_THAT(parse("per_device_eval_batch_size: 8\nper_device_train_batch_size: 8").warnings,
              ::testing::IsEmpty());
  EXPECT_THAT(parse("per_device_train_batch_size: 8").warnings, ::testing::IsEmpty());
}

TEST(Config, NeverTakesAWarmupRatioForSteps) {
  EXPECT_THAT(error_of("warmup_ratio: 1.0"), HasSubstr("warmup_ratio in run.yaml:1"));
  EXPECT_EQ(parse("warmup_ratio: 0.0\nwarmup_steps: 100\n").warmup_steps, 100);
}

TEST(Config, FileThatCannotBeReadIsNamed) {
  EXPECT_THROW(read_config(::testing::TempDir() + "no-such.yaml", {}), ConfigError);
  EXPECT_THROW(read_config(::testing::TempDir(), {}), ConfigError);
}

TEST(Config, IsReadFromAFile) {
  const std::filesystem::path file = own_path("run.yaml");
  std::ofstream(file) << "max_steps: 9\n";
  EXPECT_EQ(read_config(file, {}).max_steps, 9);
  std::filesystem::remove(file);
}

TEST(NearestName, FindsOneEditButNothingFarAway) {
  const std::vector<std::string> known{"alpha", "beta", "gamma"};
  EXPECT_EQ(nearest_name("alpa", known), "alpha");
  EXPECT_EQ(nearest_name("betta", known), "beta");
  EXPECT_EQ(nearest_name("btea", known), "beta") << "a swap is one edit";
  EXPECT_EQ(nearest_name("delta9", known), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'a'), known), "");
}

}  // namespace
}  // namespace strata
