#include "best_model_checks.hpp"

#include <fmt/format.h>

#include <cmath>

#include "strata/core/error.hpp"
#include "strata/train/checkpoints.hpp"

namespace strata {
namespace {

const char* asking_key(const RunConfig& config) {
  return config.load_best_model_at_end ? "load_best_model_at_end" : "metric_for_best_model";
}

void check_losses_are_kept(const RunConfig& config) {
  if (!config.evaluate)
    throw ConfigError(
        fmt::format("{} needs eval_strategy: steps or epoch, for the best checkpoint is that of "
                    "the least held-out loss",
                    asking_key(config)));
  if (config.save_only_model)
    throw ConfigError(
        fmt::format("{} contradicts save_only_model: true: folders of weights alone do not tell "
                    "their loss. Set save_only_model: false",
                    asking_key(config)));
}

void check_same_strategy(const RunConfig& config) {
  const SaveStrategy as_saved = config.save_strategy, as_evaluated = config.eval_each_epoch
                                                                         ? SaveStrategy::epoch
                                                                         : SaveStrategy::steps;
  if (as_saved == as_evaluated) return;
  throw ConfigError(
      "load_best_model_at_end needs save_strategy and eval_strategy to be alike: set both to "
      "steps, or both to epoch");
}

bool is_share(double steps) { return steps < 1; }

// Shares are compared in millionths, as transformers does.
bool is_multiple(double steps, double of) {
  const double unit = is_share(of) ? 1e6 : 1;
  const auto whole = std::llround(steps * unit), part = std::llround(of * unit);
  return part == 0 || whole % part == 0;
}

void check_steps(const RunConfig& config) {
  const double save = config.save_steps, eval = config.eval_steps;
  if (eval == 0)
    throw ConfigError(
        "load_best_model_at_end needs eval_steps, of which save_steps is a multiple: checkpoints "
        "that are not evaluated cannot be the best");
  if (is_share(save) != is_share(eval))
    throw ConfigError(
        fmt::format("load_best_model_at_end needs save_steps ({}) and eval_steps ({}) to be both "
                    "steps, or both shares of all steps: else one may be no multiple of the other",
                    save, eval));
  if (is_multiple(save, eval)) return;
  throw ConfigError(
      fmt::format("load_best_model_at_end needs save_steps to be a multiple of eval_steps, and {} "
                  "is none of {}",
                  save, eval));
}

}  // namespace

void check_best_model(const RunConfig& config) {
  if (!keeps_best(config)) return;
  check_losses_are_kept(config);
  if (!config.load_best_model_at_end) return;
  check_same_strategy(config);
  if (config.save_strategy == SaveStrategy::steps) check_steps(config);
}

}  // namespace strata
