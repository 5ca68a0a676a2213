#include "strata/train/planned_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cuda/cuda_kernels.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"
#include "strata/train/auto_plan.hpp"
#include "train/check_versioned.hpp"
#include "train/run_buffers.hpp"

namespace strata {
namespace {

bool knows_cores(const Topology& topology) {
  return std::ranges::any_of(topology.nodes, [](const NumaNode& n) { return !n.cores.empty(); });
}

// Where the host computes, both pools have all cores of the rank; a GPU leaves them to the updates.
std::unique_ptr<RunThreads> place_run_threads(const RunConfig& config, const Topology& topology,
                                              const RankPlace& place, const RankDevice& gpu) {
  if (!knows_cores(topology)) return nullptr;
  const CoreBinding binding =
      divide_cores(topology, {.num_ranks = place.num_host_ranks, .near_nodes = gpu.near_nodes});
  RankCores cores = binding.ranks[static_cast<std::size_t>(place.host_rank)];
  if (gpu.device != nullptr) cores.compute.clear();
  return std::make_unique<RunThreads>(topology, cores,
                                      ThreadsWanted{config.compute_threads, config.update_threads});
}

CpuKernelsOptions unplaced(int threads, const Topology& topology, const RankPlace& place) {
  const int share = std::max(1, topology.usable_cores / place.num_host_ranks);
  return {.num_threads = threads > 0 ? threads : share};
}

void make_host_kernels(const RunConfig& config, const Topology& topology, const RankPlace& place,
                       PlannedRun& run) {
  run.host_kernels =
      make_cpu_kernels(run.threads != nullptr ? run.threads->update_kernels()
                                              : unplaced(config.update_threads, topology, place));
}

void make_kernels(const RunConfig& config, const Topology& topology, const RankPlace& place,
                  PlannedRun& run) {
  if (config.kernels == KernelsKind::ref) {
    run.device_kernels = make_ref_kernels();
    run.host_kernels = make_ref_kernels();
    return;
  }
  run.threads = place_run_threads(config, topology, place, {});
  run.device_kernels =
      make_cpu_kernels(run.threads != nullptr ? run.threads->compute_kernels()
                                              : unplaced(config.compute_threads, topology, place));
  make_host_kernels(config, topology, place, run);
}

void take_gpu(const RunConfig& config, const Topology& topology, const RankPlace& place,
              RankDevice gpu, PlannedRun& run) {
  run.threads = place_run_threads(config, topology, place, gpu);
  run.device = std::move(gpu.device);
  run.workspace = std::move(gpu.workspace);
  run.staging = gpu.staging;
  run.device_sum = std::move(gpu.sum);
  run.workspace_bytes = run.workspace.bytes();
  run.device_text = std::move(gpu.description);
  run.device_kernels = std::move(gpu.kernels);
  make_host_kernels(config, topology, place, run);
}

std::vector<std::vector<DecayRange>> decay_ranges(const Model& model) {
  std::vector<std::vector<DecayRange>> ranges;
  for (const BlockSpec& block : model.blocks()) {
    std::vector<DecayRange> of_block;
    for (const ParameterSpec& p : block.parameters)
      if (p.decays) of_block.push_back({p.offset, p.offset + p.count()});
    std::ranges::sort(of_block, {}, &DecayRange::begin);
    ranges.push_back(std::move(of_block));
  }
  return ranges;
}

void make_optimizers(const RunConfig& config, PlannedRun& run) {
  const OptimizerConfig optimizer = optimizer_config(config);
  const auto decays = decay_ranges(*run.model);
  run.optimizer = std::make_unique<Optimizer>(optimizer, decays, *run.host_kernels);
  run.device_optimizer = std::make_unique<Optimizer>(optimizer, decays, *run.device_kernels);
}

void declare_training(const RunConfig& config, const Model& model, const ProgramVariant& variant,
                      Program& program) {
  const int micro_batches = static_cast<int>(config.gradient_accumulation_steps);
  model.declare_state(program, micro_batches);
  Sequence train{"train", {}};
  model.declare_training(program, train, micro_batches, variant);
  Optimizer::declare(optimizer_config(config), program, train);
  program.sequences.push_back(std::move(train));
}

void check_kept_layers(const RunConfig& config, const HfConfig& hf) {
  const std::int64_t kept = config.offload.keep_layers;
  if (kept <= hf.num_hidden_layers || kept == all_layers) return;
  throw ConfigError(
      fmt::format("offload.keep_layers is {}, but the model has num_hidden_layers {}: give at most "
                  "that many, or all",
                  kept, hf.num_hidden_layers));
}

void declare_evaluation(const Model& model, Program& program) {
  Sequence eval{"eval", {}};
  model.declare_score(program, eval, 0);
  program.sequences.push_back(std::move(eval));
}

bool uses_nvme(const Program& program, const Policy& policy) {
  return std::ranges::any_of(program.shards, [&](const Shard& shard) {
    return policy.fractions[static_cast<std::size_t>(shard.role)].nvme > 0;
  });
}

Policy make_policy(const RunConfig& config) {
  const OffloadConfig& offload = config.offload;
  Policy policy;
  const auto set = [&](Role role, const TierFractions& f) {
    policy.fractions[static_cast<std::size_t>(role)] = f;
  };
  set(Role::weight, offload.weights);
  set(Role::gradient, offload.gradients);
  set(Role::master, offload.master);
  set(Role::moment1, offload.moment1);
  set(Role::moment2, offload.moment2);
  set(Role::activation, offload.activations);
  set(Role::saved, offload.saved);
  policy.weight_slots = offload.weight_slots;
  policy.gradient_slots = offload.gradient_slots;
  policy.activation_slots = offload.activation_slots;
  policy.state_slots = offload.state_slots;
  policy.staging_slots = offload.staging_slots;
  policy.update_order = update_order(config);
  policy.streamed_updates = offload.streamed_updates;
  policy.background_saves = config.save_in_background && saves_state(config);
  policy.versioned_state = offload.versioned;
  return policy;
}

void check_verified(const Program& program, const Plan& plan) {
  const std::vector<Violation> found = verify(program, plan);
  if (found.empty()) return;
  std::string text = "the plan is wrong (a fault of Strata, please report it with your config):";
  for (const Violation& violation : found) text += "\n  " + violation.what;
  throw Error(text);
}

Rope rope_of(const std::string& type) {
  if (type == "linear") return Rope::linear;
  if (type == "llama3") return Rope::llama3;
  return type == "yarn" ? Rope::yarn : Rope::plain;
}

void check_sequence_length(const RunConfig& config, const HfConfig& hf) {
  if (config.cutoff_len > hf.max_position_embeddings)
    throw ConfigError(fmt::format("cutoff_len is {}, but the model has max_position_embeddings {}",
                                  config.cutoff_len, hf.max_position_embeddings));
  if (hf.sliding_window == 0 || config.cutoff_len <= hf.sliding_window) return;
  throw ConfigError(fmt::format(
      "cutoff_len is {}, but the model has sliding_window {}: longer sequences need attention over "
      "a window, which is not supported. Set cutoff_len: {} or less",
      config.cutoff_len, hf.sliding_window, hf.sliding_window));
}

// Over the run's kernels.
void make_model(const RunConfig& config, PlannedRun& run) {
  const HfConfig hf = read_hf_config(config.model_name_or_path);
  check_sequence_length(config, hf);
  check_kept_layers(config, hf);
  const ComputeShape shape{config.bf16 ? DType::bf16 : DType::f32,
                           config.cutoff_len * config.per_device_train_batch_size, 0,
                           config.cutoff_len};
  run.model = make_llama(llama_config(hf), shape, *run.device_kernels);
}

// Kernels that are asked for nothing but the scratch they need; one thread is the caller's own.
PlannedRun declare_without_threads(const RunConfig& config, Purpose purpose,
                                   const ProgramVariant& variant) {
  PlannedRun run;
  const bool is_on_gpu = config.device == DeviceKind::gpu;
  run.device_kernels = is_on_gpu ? cuda::make_cuda_sizes() : make_cpu_kernels({.num_threads = 1});
  run.workspace_bytes = is_on_gpu ? device_workspace_bytes(config.world) : 0;
  run.host_kernels = make_cpu_kernels({.num_threads = 1});
  make_model(config, run);
  run.program = declare_program(config, purpose, *run.model, variant);
  return run;
}

}  // namespace

UpdateOrder update_order(const RunConfig& config) {
  const bool clips = config.max_grad_norm > 0;
  const bool skips = config.non_finite == NonFinitePolicy::skip_step;
  if (config.offload.update_order == "after_backward") return UpdateOrder::after_backward;
  if (config.offload.update_order == "deferred") return UpdateOrder::deferred;
  if (config.offload.update_order == "auto")
    return clips || skips || config.offload.versioned ? UpdateOrder::deferred
                                                      : UpdateOrder::during_backward;
  if (clips)
    throw ConfigError(
        fmt::format("offload.update_order: during_backward contradicts max_grad_norm: {}: the norm "
                    "is known only after backward. "
                    "Set max_grad_norm: 0 or offload.update_order: deferred",
                    config.max_grad_norm));
  if (skips)
    throw ConfigError(
        "offload.update_order: during_backward contradicts non_finite: skip_step: tiles are "
        "updated before all "
        "gradients are known. Set non_finite: stop or offload.update_order: deferred");
  return UpdateOrder::during_backward;
}

ProgramVariant program_variant(const RunConfig& config) {
  const std::int64_t all = config.gradient_accumulation_steps;
  const std::int64_t group = config.offload.accumulation_group;
  if (group > 0 && all % group != 0)
    throw ConfigError(
        fmt::format("offload.accumulation_group: {} does not divide gradient_accumulation_steps: "
                    "{}: groups are of one size. Set a divisor, horizontal or vertical",
                    group, all));
  return {.accumulation_group = static_cast<int>(group == 0 ? all : group),
          .kept_layers = static_cast<int>(config.offload.keep_layers)};
}

OptimizerConfig optimizer_config(const RunConfig& config) {
  const bool is_sgd = config.optim == UpdateRule::sgd;
  if (config.optimizer_master == MasterFormat::split && !config.bf16)
    throw ConfigError(
        "optimizer_master: split contradicts bf16: false: the working weight is half of a split "
        "master and must be bf16. Set bf16: true or optimizer_master: fp32");
  if (config.sgd_momentum != 0 && !is_sgd)
    throw ConfigError(fmt::format("sgd_momentum has a meaning only with optim: sgd, not {}",
                                  update_rule_name(config.optim)));
  return {.rule = config.optim,
          .beta1 = is_sgd ? config.sgd_momentum : config.adam_beta1,
          .beta2 = config.adam_beta2,
          .epsilon = config.adam_epsilon,
          .weight_decay = config.weight_decay,
          .master = config.optimizer_master,
          .moments = config.optimizer_moments,
          .seed = config.seed};
}

LlamaConfig llama_config(const HfConfig& hf) {
  LlamaConfig config;
  config.vocab_size = hf.vocab_size;
  config.hidden_size = hf.hidden_size;
  config.intermediate_size = hf.intermediate_size;
  config.num_layers = hf.num_hidden_layers;
  config.num_heads = hf.num_attention_heads;
  config.num_key_value_heads = hf.num_key_value_heads;
  config.head_dim = hf.head_dim;
  config.max_positions = hf.max_position_embeddings;
  config.rms_norm_epsilon = static_cast<float>(hf.rms_norm_eps);
  config.tie_word_embeddings = hf.tie_word_embeddings;
  config.attention_bias = hf.attention_bias;
  config.attention_output_bias = hf.attention_output_bias;
  config.mlp_bias = hf.mlp_bias;
  config.query_key_norm = hf.query_key_norm;
  config.rope = rope_of(hf.rope_type);
  config.rope_theta = hf.rope_theta;
  config.rope_factor = hf.rope_factor;
  config.rope_low_freq_factor = hf.rope_low_freq_factor;
  config.rope_high_freq_factor = hf.rope_high_freq_factor;
  config.rope_original_max_positions = hf.rope_original_max_positions;
  config.rope_beta_fast = hf.rope_beta_fast;
  config.rope_beta_slow = hf.rope_beta_slow;
  config.rope_truncates = hf.rope_truncates;
  config.rope_attention_factor = hf.rope_attention_factor;
  config.initializer_range = hf.initializer_range;
  return config;
}

std::vector<ExpectedTensor> expected_tensors(const Model& model) {
  std::vector<ExpectedTensor> tensors;
  for (const BlockSpec& block : model.blocks())
    for (const ParameterSpec& p : block.parameters)
      tensors.push_back({p.name, {p.shape.dims.begin(), p.shape.dims.begin() + p.shape.rank}});
  return tensors;
}

PlannedRun plan_run(const RunConfig& config, Purpose purpose) {
  return plan_run(config, purpose, read_topology());
}

PlannedRun plan_run(const RunConfig& config, Purpose purpose, const Topology& topology) {
  return plan_run(config, purpose, topology, {0, config.world, 0, config.world},
                  rank_limits(config, purpose, topology, config.world));
}

bool saves_state(const RunConfig& config) {
  return config.save_strategy != SaveStrategy::no && !config.save_only_model;
}

bool uses_drives(const RunConfig& config, Purpose purpose) {
  const PlanChoice choice = plan_choice(config);
  return uses_nvme(declare_without_threads(config, purpose, choice.variant).program, choice.policy);
}

PlannedRun plan_run(const RunConfig& config, Purpose purpose, const Topology& topology,
                    const RankPlace& place, const TierLimits& limits, RankDevice device) {
  ensure(place.world == config.world);
  PlannedRun run;
  if (device.device != nullptr)
    take_gpu(config, topology, place, std::move(device), run);
  else
    make_kernels(config, topology, place, run);
  make_model(config, run);
  const PlanChoice choice = plan_choice(config);
  run.program = declare_program(config, purpose, *run.model, choice.variant, place.rank);
  if (purpose == Purpose::train) make_optimizers(config, run);
  run.plan = make_plan(run.program, with_buffers(limits, config, purpose, run, choice.policy),
                       choice.policy);
  check_verified(run.program, run.plan);
  return run;
}

PlannedRun declare_run(const RunConfig& config, const ProgramVariant& variant) {
  PlannedRun run = declare_without_threads(config, Purpose::train, variant);
  make_optimizers(config, run);
  return run;
}

PlannedRun plan_run(const RunConfig& config, const TierLimits& limits, const PlanChoice& choice,
                    Proof proof) {
  PlannedRun run = declare_run(config, choice.variant);
  run.plan = make_plan(
      run.program, with_buffers(limits, config, Purpose::train, run, choice.policy), choice.policy);
  if (proof == Proof::verified) check_verified(run.program, run.plan);
  return run;
}

PlannedRun plan_run(const RunConfig& config, const MachineProfile& machine) {
  RunConfig there = config;
  there.device = planned_device(config, machine);
  return plan_run(there, run_limits(there, machine), plan_choice(there), Proof::verified);
}

Program declare_program(const RunConfig& config, Purpose purpose, const Model& model,
                        const ProgramVariant& variant, int rank) {
  Program program;
  program.world = config.world;
  program.rank = rank;
  program.zero_stage = config.zero_stage;
  program.tile_elements = std::max<std::int64_t>(
      norm_chunk_elements, static_cast<std::int64_t>(config.offload.tile_bytes / 4) /
                               norm_chunk_elements * norm_chunk_elements);
  if (purpose == Purpose::train) {
    declare_training(config, model, variant, program);
    if (!config.offload.automatic) check_versioned(config, program);  // Else the planner does.
  } else {
    model.declare_state(program, 0);
  }
  if (purpose == Purpose::evaluate || config.evaluate) declare_evaluation(model, program);
  return program;
}

PlanChoice plan_choice(const RunConfig& config) {
  return {program_variant(config), make_policy(config)};
}

}  // namespace strata
