// What people bring from LLaMA-Factory is answered at once and whole.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strata/cli/config.hpp"
#include "strata/core/error.hpp"
#include "unit/cli/config_texts.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

constexpr ConfigTexts parse_sft{"sft.yaml"};
constexpr ConfigErrors sft_error_of{"sft.yaml"};

// The words of a full fine-tune as such files have them.
constexpr const char* brought = R"(### model
model_name_or_path: Qwen/Qwen2.5-7B
trust_remote_code: true
flash_attn: fa2
enable_liger_kernel: true
### method
stage: sft
do_train: true
finetuning_type: full
freeze_vision_tower: true
### dataset
dataset: my_instructions
template: qwen
cutoff_len: 4096
max_samples: 5000
overwrite_cache: true
preprocessing_num_workers: 8
dataloader_num_workers: 2
dataloader_pin_memory: true
### output
output_dir: runs/sft
logging_steps: 10
save_steps: 200
plot_loss: true
overwrite_output_dir: true
save_only_model: false
report_to: none
log_level: info
include_num_input_tokens_seen: true
### train
per_device_train_batch_size: 1
gradient_accumulation_steps: 2
disable_gradient_checkpointing: false
learning_rate: fast
num_train_epochs: 2.0
lr_scheduler_type: cosine
warmup_ratio: 0.05
bf16: true
bf16_full_eval: true
ddp_timeout: 180000000
ddp_find_unused_parameters: false
full_determinism: false
local_rank: -1
skip_memory_metrics: true
export_device: cpu
### eval
val_size: 0.05
per_device_eval_batch_size: 1
evl_strategy: steps
eval_steps: 100
)";

constexpr const char* answer = R"(8 settings cannot be taken:
  'freeze_vision_tower: true' in sft.yaml:10 is not supported: every weight is trained; remove it
  'template: qwen' in sft.yaml:13 is not supported: text is turned into token shards beforehand; see scripts/prepare.py
  'max_samples: 5000' in sft.yaml:15 is not supported: text is turned into token shards beforehand; see scripts/prepare.py
  'plot_loss: true' in sft.yaml:24 is not supported: draw metrics.jsonl with the tool of your choice; remove it
  'overwrite_output_dir: true' in sft.yaml:25 is not supported: an export that is there )"
                               R"(is never overwritten; remove it or name another export_dir
  learning_rate in sft.yaml:34: 'fast' is not a number >= 0
  'val_size: 0.05' in sft.yaml:47 is not supported: split when preparing, then give eval_dataset
  unknown key 'evl_strategy' in sft.yaml:49: did you mean 'eval_strategy'?)";

std::string without(std::string yaml, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const std::size_t begin = yaml.find("\n" + key + ":");
    EXPECT_NE(begin, std::string::npos) << key;
    yaml.erase(begin, yaml.find('\n', begin + 1) - begin);
  }
  return yaml;
}

TEST(ConfigProblems, AreToldAllAtOnceInTheOrderOfTheFile) {
  EXPECT_EQ(sft_error_of(brought), answer);
}

TEST(ConfigProblems, AreAllThatStandsBetweenAFileAndARun) {
  const std::string mended =
      without(brought, {"freeze_vision_tower", "template", "max_samples", "plot_loss",
                        "overwrite_output_dir", "learning_rate", "val_size", "evl_strategy"});
  const RunConfig config =
      parse_sft(mended, {"learning_rate=1e-5", "eval_strategy=steps", "eval_dataset=held-out.tok"});
  EXPECT_EQ(config.cutoff_len, 4096);
  EXPECT_EQ(config.ddp_timeout, 180000000);
  EXPECT_TRUE(config.evaluate);
  EXPECT_THAT(config.warnings, ::testing::ElementsAre(HasSubstr("'warmup_ratio'")));
}

TEST(ConfigProblems, CountThoseOfTheCommandLineLast) {
  EXPECT_EQ(sft_error_of("seed: x\n", {"bf16=maybe", "learning_rat=1"}),
            "3 settings cannot be taken:\n"
            "  seed in sft.yaml:1: 'x' is not an integer >= 0, < 2^64\n"
            "  bf16 on the command line ('bf16=maybe'): expected true or false\n"
            "  unknown key 'learning_rat' on the command line ('learning_rat=1'): did you mean "
            "'learning_rate'?");
}

TEST(ConfigProblems, OfOneTableForThreeRolesAreOne) {
  EXPECT_EQ(sft_error_of("offload:\n  optimizer: {tape: 1}\n"),
            "offload.optimizer in sft.yaml:2: unknown tier 'tape': known are gpu, cpu and nvme");
}

TEST(ConfigProblems, HoldContradictionsTogether) {
  const std::string text =
      sft_error_of("max_steps: 0\neval_strategy: steps\noffload.optimizer: nvme\n");
  EXPECT_THAT(text, HasSubstr("max_steps: 0 trains nothing"));
  EXPECT_THAT(text, HasSubstr("needs eval_dataset"));
  EXPECT_THAT(text, HasSubstr("offload.nvme_paths is empty"));
}

// Every name that transformers' TrainingArguments and LLaMA-Factory's examples have, old ones too.
constexpr const char* transformers_names[] = {"accelerator_config",
                                              "activation_checkpointing",
                                              "adafactor",
                                              "adam_beta1",
                                              "auto_find_batch_size",
                                              "average_tokens_across_devices",
                                              "batch_eval_metrics",
                                              "bf16",
                                              "bf16_full_eval",
                                              "data_seed",
                                              "dataloader_drop_last",
                                              "dataloader_in_order",
                                              "dataloader_multiprocessing_context",
                                              "dataloader_num_workers",
                                              "dataloader_persistent_workers",
                                              "dataloader_pin_memory",
                                              "dataloader_prefetch_factor",
                                              "ddp_backend",
                                              "ddp_broadcast_buffers",
                                              "ddp_bucket_cap_mb",
                                              "ddp_find_unused_parameters",
                                              "ddp_static_graph",
                                              "ddp_timeout",
                                              "debug",
                                              "disable_tqdm",
                                              "do_eval",
                                              "do_predict",
                                              "do_train",
                                              "enable_jit_checkpoint",
                                              "eval_accumulation_steps",
                                              "eval_delay",
                                              "eval_do_concat_batches",
                                              "eval_on_start",
                                              "eval_steps",
                                              "eval_strategy",
                                              "eval_use_gather_object",
                                              "evaluation_strategy",
                                              "fp16",
                                              "fp16_full_eval",
                                              "fsdp",
                                              "fsdp_config",
                                              "full_determinism",
                                              "gradient_checkpointing",
                                              "gradient_checkpointing_kwargs",
                                              "greater_is_better",
                                              "group_by_length",
                                              "half_precision_backend",
                                              "hub_model_id",
                                              "hub_strategy",
                                              "ignore_data_skip",
                                              "include_for_metrics",
                                              "include_inputs_for_metrics",
                                              "include_num_input_tokens_seen",
                                              "include_tokens_per_second",
                                              "jit_mode_eval",
                                              "label_names",
                                              "label_smoothing_factor",
                                              "length_column_name",
                                              "liger_kernel_config",
                                              "load_best_model_at_end",
                                              "local_rank",
                                              "log_level",
                                              "log_level_replica",
                                              "log_on_each_node",
                                              "logging_dir",
                                              "logging_first_step",
                                              "logging_nan_inf_filter",
                                              "logging_steps",
                                              "logging_strategy",
                                              "metric_for_best_model",
                                              "neftune_noise_alpha",
                                              "no_cuda",
                                              "optim_args",
                                              "optim_target_modules",
                                              "overwrite_output_dir",
                                              "parallelism_config",
                                              "past_index",
                                              "prediction_loss_only",
                                              "project",
                                              "push_to_hub",
                                              "ray_scope",
                                              "remove_unused_columns",
                                              "report_to",
                                              "restore_callback_states_from_checkpoint",
                                              "run_name",
                                              "save_on_each_node",
                                              "save_safetensors",
                                              "skip_memory_metrics",
                                              "tf32",
                                              "torch_compile",
                                              "torch_compile_backend",
                                              "torch_empty_cache_steps",
                                              "tpu_num_cores",
                                              "trackio_space_id",
                                              "train_sampling_strategy",
                                              "use_cache",
                                              "use_cpu",
                                              "use_ipex",
                                              "use_liger_kernel",
                                              "use_mps_device",
                                              "warmup_ratio",
                                              "trust_remote_code",
                                              "cache_dir",
                                              "flash_attn",
                                              "enable_liger_kernel",
                                              "rope_scaling",
                                              "finetuning_type",
                                              "lora_rank",
                                              "template",
                                              "packing",
                                              "neat_packing",
                                              "val_size",
                                              "dpo_ftx",
                                              "use_galore",
                                              "galore_rank",
                                              "pref_beta",
                                              "vllm_maxlen",
                                              "export_size",
                                              "export_device"};

TEST(ConfigProblems, NameNoKeyOfOtherProgramsUnknown) {
  for (const std::string name : transformers_names)
    EXPECT_THAT(sft_error_of(name + ": [1, 2]"), ::testing::Not(HasSubstr("unknown key"))) << name;
}

TEST(ConfigProblems, AreNoneWhereAKeyChangesNothing) {
  for (const char* yaml :
       {"flash_attn: sdpa", "flash_attn: auto", "flash_attn: disabled", "dataloader_num_workers: 4",
        "preprocessing_num_workers: 16", "export_device: cpu", "trust_remote_code: true",
        "dataloader_pin_memory: false", "log_level: passive", "enable_liger_kernel: true",
        "include_num_input_tokens_seen: all", "disable_gradient_checkpointing: false",
        "bf16_full_eval: true", "full_determinism: true", "local_rank: -1",
        "skip_memory_metrics: false", "ddp_backend: nccl", "fp16_opt_level: O1"})
    EXPECT_EQ(parse_sft(yaml).warnings.size(), 0u) << yaml;
}

}  // namespace
}  // namespace strata
