#include "cli/describe_saves.hpp"

#include <fmt/format.h>

#include <string_view>

#include "strata/core/bytes.hpp"
#include "strata/train/checkpoints.hpp"

namespace strata {
namespace {

std::string_view save_manner(const RunConfig& config, const PlannedRun& run) {
  if (config.save_only_model) return " (weights alone)";
  return run.plan.schedule("train_save") != nullptr ? " while training goes on" : "";
}

std::string describe_save_steps(double steps) {
  if (steps < 1) return fmt::format("every {:.4g}% of the steps", steps * 100);
  return fmt::format("every {} steps", steps);
}

std::string describe_kept(const RunConfig& config, const CheckpointDemand& demand) {
  if (config.save_total_limit == 0) return "all are kept";
  const std::string at_most = fmt::format("{} at most", format_bytes(demand.bytes_kept));
  if (!keeps_best(config))
    return fmt::format("the last {} are kept, {}", config.save_total_limit, at_most);
  return config.save_total_limit == 1
             ? fmt::format("the last and the best are kept, {}", at_most)
             : fmt::format("{} are kept, the last and the best among them, {}",
                           config.save_total_limit, at_most);
}

}  // namespace

std::string describe_saves(const RunConfig& config, const PlannedRun& run) {
  if (config.save_strategy == SaveStrategy::no) return "never";
  const CheckpointDemand demand = checkpoint_demand(config, run);
  return fmt::format(
      "{}, {} each{}, {}",
      config.save_strategy == SaveStrategy::epoch ? "every epoch"
                                                  : describe_save_steps(config.save_steps),
      format_bytes(demand.bytes), save_manner(config, run), describe_kept(config, demand));
}

}  // namespace strata
