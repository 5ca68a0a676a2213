#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "best_model_checks.hpp"
#include "config_keys.hpp"
#include "config_problems.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/drive.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {
namespace {

void check_nvme_paths(const OffloadConfig& offload) {
  const auto twice = named_twice(offload.nvme_paths);
  if (!twice) return;
  throw ConfigError(fmt::format("offload.nvme_paths names {} twice: name each drive once", *twice));
}

void check_nvme_weights(const OffloadConfig& offload) {
  if (offload.nvme_weights.empty() || offload.nvme_weights.size() == offload.nvme_paths.size())
    return;
  throw ConfigError(fmt::format(
      "offload.nvme_weights has {} numbers for {} offload.nvme_paths: give one per path, such as "
      "its measured GB/s",
      offload.nvme_weights.size(), offload.nvme_paths.size()));
}

void check_nvme(const OffloadConfig& offload) {
  if (!offload.nvme_paths.empty()) return;
  const std::array<std::pair<const char*, const TierFractions*>, 7> roles{
      {{"weights", &offload.weights},
       {"gradients", &offload.gradients},
       {"master", &offload.master},
       {"moment1", &offload.moment1},
       {"moment2", &offload.moment2},
       {"activations", &offload.activations},
       {"saved", &offload.saved}}};
  for (const auto& [name, fractions] : roles) {
    if (fractions->nvme <= 0) continue;
    throw ConfigError(
        fmt::format("offload.{} puts {:.4g}% on nvme, but offload.nvme_paths is empty: name a "
                    "folder on each drive to use",
                    name, fractions->nvme * 100));
  }
}

void check_tile(const OffloadConfig& offload) {
  const std::uint64_t chunk = static_cast<std::uint64_t>(norm_chunk_elements) * sizeof(float);
  if (offload.tile_bytes % chunk == 0 && offload.tile_bytes <= GiB) return;
  throw ConfigError(fmt::format("offload.tile_bytes: {} is not a multiple of {} up to 1 GiB",
                                offload.tile_bytes, format_bytes(chunk)));
}

struct ScheduleArgument {
  const char* name;
  bool is_set;
  std::vector<ScheduleKind> kinds;
};

// "cosine, cosine_with_min_lr or warmup_stable_decay"
std::string names_of(const std::vector<ScheduleKind>& kinds) {
  std::string text;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (i > 0) text += i + 1 == kinds.size() ? " or " : ", ";
    text += schedule_name(kinds[i]);
  }
  return text;
}

std::vector<ScheduleArgument> schedule_arguments(const RunConfig& config) {
  using enum ScheduleKind;
  const RunConfig defaults;
  return {
      {"min_lr_ratio",
       config.lr_min_ratio != defaults.lr_min_ratio,
       {cosine, cosine_with_min_lr, warmup_stable_decay}},
      {"min_lr", config.lr_min != defaults.lr_min, {cosine, cosine_with_min_lr}},
      {"num_decay_steps", config.lr_decay_steps != defaults.lr_decay_steps, {warmup_stable_decay}},
      {"num_cycles",
       config.lr_num_cycles.has_value(),
       {cosine, cosine_with_min_lr, cosine_with_restarts}},
      {"power", config.lr_power != defaults.lr_power, {polynomial}},
      {"lr_end", config.lr_end != defaults.lr_end, {polynomial}},
      {"timescale", config.lr_timescale != defaults.lr_timescale, {inverse_sqrt}},
  };
}

// transformers refuses arguments that a schedule does not take; a floor that is silently not kept
// would be worse.
void check_schedule_arguments(const RunConfig& config) {
  for (const ScheduleArgument& argument : schedule_arguments(config)) {
    if (!argument.is_set ||
        std::ranges::find(argument.kinds, config.lr_scheduler_type) != argument.kinds.end())
      continue;
    throw ConfigError(
        fmt::format("lr_scheduler_kwargs.{} has a meaning only with lr_scheduler_type {}",
                    argument.name, names_of(argument.kinds)));
  }
}

void check_floor(const RunConfig& config) {
  if (config.lr_min > 0 && config.lr_min_ratio > 0)
    throw ConfigError(
        "lr_scheduler_kwargs.min_lr contradicts lr_scheduler_kwargs.min_lr_ratio (min_lr_rate): "
        "give one of them");
  if (config.lr_min > 0 && config.lr_min > config.learning_rate)
    throw ConfigError(fmt::format("lr_scheduler_kwargs.min_lr: {} is above learning_rate: {}",
                                  config.lr_min, config.learning_rate));
  if (config.lr_scheduler_type == ScheduleKind::cosine_with_min_lr && config.lr_min <= 0 &&
      config.lr_min_ratio <= 0)
    throw ConfigError(
        "lr_scheduler_type: cosine_with_min_lr needs lr_scheduler_kwargs.min_lr or .min_lr_rate "
        "above 0; cosine falls to 0");
}

void check_end(const RunConfig& config) {
  if (config.lr_scheduler_type != ScheduleKind::polynomial || config.lr_end < config.learning_rate)
    return;
  throw ConfigError(
      fmt::format("lr_scheduler_type: polynomial falls from learning_rate to "
                  "lr_scheduler_kwargs.lr_end, but {} is not above {}",
                  config.learning_rate, config.lr_end));
}

void check_decay(const RunConfig& config) {
  if (config.lr_scheduler_type != ScheduleKind::warmup_stable_decay || config.lr_decay_steps > 0)
    return;
  throw ConfigError(
      "lr_scheduler_type: warmup_stable_decay needs lr_scheduler_kwargs.num_decay_steps");
}

void check_warmup(const RunConfig& config) {
  if (config.lr_scheduler_type == ScheduleKind::constant && config.warmup_steps > 0) {
    throw ConfigError(
        "lr_scheduler_type: constant has no warm-up: use constant_with_warmup or warmup_steps: 0");
  }
}

void check_device(const RunConfig& config) {
  if (config.device != DeviceKind::gpu || config.kernels != KernelsKind::ref) return;
  throw ConfigError(
      "kernels: ref contradicts device: gpu: the reference computes on the host. Set device: cpu, "
      "or kernels: cpu, which is then of the host's part alone");
}

void check_length(const RunConfig& config) {
  if (config.max_steps == 0)
    throw ConfigError("max_steps: 0 trains nothing: -1 (by num_train_epochs) or at least 1");
}

void check_evaluation(const RunConfig& config) {
  if (!config.evaluate || !config.eval_dataset.empty()) return;
  throw ConfigError(
      "eval_strategy needs eval_dataset: name held-out token shards or set eval_strategy: \"no\"");
}

void check_offload(const OffloadConfig& offload, ConfigProblems& problems) {
  for (const auto check : {check_tile, check_nvme, check_nvme_paths, check_nvme_weights})
    problems.collect(0, [&] { check(offload); });
}

}  // namespace

void check_config(const RunConfig& config) {
  ConfigProblems problems;
  for (const auto check :
       {check_length, check_evaluation, check_best_model, check_schedule_arguments, check_floor,
        check_end, check_decay, check_warmup, check_device})
    problems.collect(0, [&] { check(config); });
  // These throw when a key contradicts another.
  problems.collect(0, [&] { update_order(config); });
  problems.collect(0, [&] { program_variant(config); });
  problems.collect(0, [&] { optimizer_config(config); });
  check_offload(config.offload, problems);
  problems.check();
}

}  // namespace strata
