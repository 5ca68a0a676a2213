#include "deepspeed_rules.hpp"

#include <algorithm>

#include "config_names.hpp"

namespace strata {
namespace {

using namespace accepted;
using Rules = std::vector<DeepSpeedRule>;

Rules with_prefix(const std::string& prefix, const Values& names, const Values& accepted,
                  const std::string& reason) {
  Rules rules;
  for (const std::string& name : names) rules.push_back({prefix + name, "", accepted, reason});
  return rules;
}

Rules batch_rules() {
  return {
      {"train_batch_size", "train_batch_size"},
      {"train_micro_batch_size_per_gpu", "per_device_train_batch_size"},
      {"gradient_accumulation_steps", "gradient_accumulation_steps"},
      {"gradient_clipping", "max_grad_norm"},
      {"prescale_gradients", "", off, "gradients are divided by the trained tokens of all ranks"},
      {"gradient_predivide_factor", "", {"1", "1.0"}, "gradients are divided by tokens; set 1.0"},
      {"sparse_gradients", "", off, "gradients are dense; set false"},
      {"dataloader_drop_last", "", off, "the last batch is filled up with empty rows; set false"},
  };
}

Rules number_rules() {
  return {
      {"bf16.enabled", "bf16"},
      {"bf16.immediate_grad_update", "", any},
      {"bf16.check_grad_overflow", "", any},
      {"bf16.*", "", off,
       "masters and moments are chosen by optimizer_master and optimizer_moments; remove it"},
      {"fp16.enabled", "", off, "fp16 needs loss scaling, which Strata does not do; use bf16"},
      {"fp16.*", "", any},
      {"amp.enabled", "", off, "fp16 needs loss scaling, which Strata does not do; use bf16"},
      {"amp.*", "", any},
      {"torch_autocast.enabled", "", off, "there is no PyTorch underneath; use bf16"},
      {"torch_autocast.*", "", any},
      {"data_types.grad_accum_dtype", "", {"fp32"}, "gradients are accumulated in fp32"},
      {"communication_data_type", "", {"fp32"}, "gradients are summed over ranks in fp32"},
      {"seq_parallel_communication_data_type", "", any},
      {"quantize_training*", "", never, "weights are bf16 or fp32; remove it"},
      {"compression_training*", "", never, "weights are bf16 or fp32; remove it"},
  };
}

// Read together with others of their group by DeepSpeedTranslation.
Rules grouped_rules() {
  return with_prefix(
      "",
      {"zero_optimization.offload_optimizer.device", "zero_optimization.offload_optimizer.ratio",
       "zero_optimization.offload_optimizer.nvme_path", "zero_optimization.offload_param.device",
       "zero_optimization.offload_param.nvme_path", "activation_checkpointing.cpu_checkpointing",
       "optimizer.type", "optimizer.params.betas", "optimizer.params.adam_w_mode", "scheduler.type",
       "scheduler.params.warmup_type"},
      any, "it is read with others of its group");
}

Rules zero_rules() {
  const std::string zero = "zero_optimization.";
  Rules rules{
      {zero + "stage", "zero_optimization.stage"},
      {zero + "offload_optimizer.super_offload", "", off,
       "offload.streamed_updates says what the GPU updates; remove it"},
      {zero + "offload_optimizer.*", "", any},
      {zero + "offload_param.*", "", any},
      {zero + "cpu_offload", "", off, "use offload_optimizer: {device: cpu}"},
      {zero + "cpu_offload_param", "", off, "use offload_param: {device: cpu}"},
      {zero + "zero_hpz_partition_size", "", {"1"}, "a weight has one slice per rank; set 1"},
      {zero + "mics_shard_size", "", {"-1"}, "a weight has one slice per rank; set -1"},
      {zero + "zero_quantized_*", "", off, "ranks exchange weights and gradients as they are"},
      {zero + "zeropp_*", "", off, "ranks exchange weights and gradients as they are"},
      {zero + "zenflow*", "", never, "no update is put off to a later step; remove it"},
  };
  const Rules tuning = with_prefix(zero,
                                   {"allgather_*",
                                    "reduce_*",
                                    "stage3_*",
                                    "use_multi_rank_bucket_allreduce",
                                    "overlap_comm",
                                    "contiguous_gradients",
                                    "sub_group_size",
                                    "round_robin_gradients",
                                    "elastic_checkpoint",
                                    "load_from_fp32_weights",
                                    "ignore_unused_parameters",
                                    "legacy_stage1",
                                    "param_*",
                                    "prefetch_bucket_size",
                                    "max_live_parameters",
                                    "max_reuse_distance",
                                    "model_*",
                                    "module_granularity_threshold",
                                    "gather_16bit_weights_on_model_save",
                                    "mics_hierarchical_params_gather",
                                    "memory_efficient_linear",
                                    "log_trace_cache_warnings",
                                    "grad_hooks",
                                    "pipeline_loading_checkpoint",
                                    "override_module_apply",
                                    "cpu_offload_use_pin_memory",
                                    "use_all_reduce_for_fetch_params",
                                    "enable_sanity_checks",
                                    "save_muon_momentum_buffer_*"},
                                   any, "");
  rules.insert(rules.end(), tuning.begin(), tuning.end());
  return rules;
}

Rules optimizer_rules() {
  return {
      {"optimizer.params.lr", "learning_rate"},
      {"optimizer.params.eps", "adam_epsilon"},
      {"optimizer.params.weight_decay", "weight_decay"},
      {"optimizer.params.momentum", "sgd_momentum"},
      {"optimizer.params.torch_adam", "", any},
      {"optimizer.params.fused", "", any},
      {"optimizer.params.foreach", "", any},
      {"optimizer.params.bias_correction", "", {"true"}, "AdamW corrects its moments; set true"},
      {"optimizer.params.amsgrad", "", off, "no largest second moment is kept; set false"},
      {"optimizer.params.nesterov", "", off, "momentum is plain; set false"},
      {"optimizer.params.dampening", "", off, "momentum is plain; set 0"},
      {"optimizer.legacy_fusion", "", any},
      {"scheduler.params.warmup_max_lr", "learning_rate"},
      {"scheduler.params.warmup_num_steps", "warmup_steps"},
      {"scheduler.params.total_num_steps", "max_steps"},
      {"scheduler.params.cos_min_ratio", "lr_scheduler_kwargs.min_lr_ratio"},
      {"scheduler.params.warmup_min_lr", "", off, "warm-up begins at 0; set 0"},
      {"scheduler.params.warmup_min_ratio", "", off, "warm-up begins at 0; set 0"},
      {"scheduler.params.last_batch_iteration", "", {"-1"}, "a resumed run knows its step"},
  };
}

// With a switch `enabled` and values that mean nothing without it.
Rules switched_rules() {
  const std::string tracker = "metrics go to metrics.jsonl; set false";
  const std::string every = "every token of the data is trained as it is; set false";
  const std::pair<const char*, std::string> groups[] = {
      {"tensorboard", tracker},
      {"wandb", tracker},
      {"csv_monitor", tracker},
      {"comet", tracker},
      {"flops_profiler", "use `strata train --trace`; set false"},
      {"comms_logger", "use `strata train --trace`; set false"},
      {"autotuning", "use `strata plan --auto`; set false"},
      {"elasticity", "a run goes on with other ranks from a checkpoint; set false"},
      {"curriculum_learning", every},
      {"data_efficiency", every},
      {"progressive_layer_drop", "every layer is trained; set false"},
      {"eigenvalue", "curvature is not taken; set false"},
      {"hybrid_engine", "nothing is generated; set false"},
      {"nebula", "checkpoints go to output_dir; set false"}};
  Rules rules;
  for (const auto& [name, reason] : groups) {
    rules.push_back({std::string(name) + ".enabled", "", off, reason});
    rules.push_back({std::string(name) + ".*", "", any});
  }
  return rules;
}

Rules other_rules() {
  Rules rules = with_prefix(
      "",
      {"aio.*", "steps_per_print", "wall_clock_breakdown", "memory_breakdown", "dump_state",
       "activation_checkpointing.number_checkpoints",
       "activation_checkpointing.contiguous_memory_optimization",
       "activation_checkpointing.synchronize_checkpoint_boundary",
       "activation_checkpointing.profile", "zero_allow_untested_optimizer",
       "zero_force_ds_cpu_optimizer", "disable_allgather", "checkpoint.*", "compile.*", "timers.*",
       "use_data_before_expert_parallelism", "graph_harvesting", "$schema", "_comment*"},
      any, "");
  const Rules refused{
      {"activation_checkpointing.partition_activations", "", off,
       "each rank keeps its own boundary activations; see offload.activations"},
      {"sparse_attention*", "", never, "attention is the model's own; remove it"},
      {"tensor_parallel*", "", never, "ranks hold slices of vectors; see zero_optimization.stage"},
      {"sequence_parallel_size", "", {"1"}, "each rank has whole rows; set 1"},
      {"pipeline*", "", never, "every rank computes all layers; remove it"},
  };
  rules.insert(rules.end(), refused.begin(), refused.end());
  return rules;
}

Rules all_rules() {
  Rules rules;
  for (const auto& part : {batch_rules(), number_rules(), grouped_rules(), zero_rules(),
                           optimizer_rules(), switched_rules(), other_rules()})
    rules.insert(rules.end(), part.begin(), part.end());
  return rules;
}

}  // namespace

const std::vector<DeepSpeedRule>& deepspeed_rules() {
  static const std::vector<DeepSpeedRule> rules = all_rules();
  return rules;
}

const DeepSpeedRule* find_deepspeed_rule(std::string_view name) {
  const auto found = std::ranges::find_if(
      deepspeed_rules(), [&](const DeepSpeedRule& rule) { return matches_name(rule.name, name); });
  return found == deepspeed_rules().end() ? nullptr : &*found;
}

bool is_deepspeed_group(std::string_view name) {
  const std::string prefix = std::string(name) + ".";
  return std::ranges::any_of(deepspeed_rules(), [&](const DeepSpeedRule& rule) {
    return rule.name.starts_with(prefix) || rule.name == std::string(name) + "*";
  });
}

}  // namespace strata
