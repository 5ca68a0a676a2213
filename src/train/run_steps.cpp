#include "strata/train/run_steps.hpp"

#include <cmath>

namespace strata {

std::int64_t num_steps(double steps_or_share, std::int64_t total_steps) {
  if (steps_or_share >= 1) return static_cast<std::int64_t>(steps_or_share);
  return static_cast<std::int64_t>(std::ceil(steps_or_share * static_cast<double>(total_steps)));
}

bool ends_epoch(double epochs_before, double epochs) {
  return std::floor(epochs + 1e-9) > std::floor(epochs_before + 1e-9);
}

LearningRateSchedule learning_rates(const RunConfig& config, std::int64_t total_steps) {
  LearningRateSchedule rates;
  rates.kind = config.lr_scheduler_type;
  rates.peak = config.learning_rate;
  rates.warmup_steps = num_steps(config.warmup_steps, total_steps);
  rates.total_steps = total_steps;
  rates.decay_steps = config.lr_decay_steps;
  rates.min_ratio = config.lr_min > 0 ? config.lr_min / config.learning_rate : config.lr_min_ratio;
  rates.num_cycles = config.lr_num_cycles.value_or(
      config.lr_scheduler_type == ScheduleKind::cosine_with_restarts ? 1 : 0.5);
  rates.power = config.lr_power;
  rates.end = config.lr_end;
  rates.timescale = config.lr_timescale;
  return rates;
}

}  // namespace strata
