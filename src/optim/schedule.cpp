#include "strata/optim/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::int64_t timescale_without_warmup = 10'000;

double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(1, whole));
}

// Of the steps after the warm-up.
double progress_of(const LearningRateSchedule& s, std::int64_t step) {
  return ratio(step - s.warmup_steps, s.total_steps - s.warmup_steps);
}

double linear_factor(const LearningRateSchedule& s, std::int64_t step) {
  return std::max(0.0, ratio(s.total_steps - step, s.total_steps - s.warmup_steps));
}

double cosine_factor(const LearningRateSchedule& s, std::int64_t step) {
  const double wave =
      0.5 * (1 + std::cos(std::numbers::pi * s.num_cycles * 2 * progress_of(s, step)));
  return std::max(0.0, wave * (1 - s.min_ratio) + s.min_ratio);
}

double restarting_cosine_factor(const LearningRateSchedule& s, std::int64_t step) {
  const double progress = progress_of(s, step);
  if (progress >= 1) return 0;
  const double of_wave = std::fmod(s.num_cycles * progress, 1);
  return std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * of_wave)));
}

double stable_decay_factor(const LearningRateSchedule& s, std::int64_t step) {
  const std::int64_t decay_start = s.total_steps - s.decay_steps;
  if (step < decay_start) return 1;
  if (step >= s.total_steps) return s.min_ratio;
  const double wave = 0.5 * (1 + std::cos(std::numbers::pi * s.num_cycles * 2 *
                                          ratio(step - decay_start, s.decay_steps)));
  return std::max(0.0, wave * (1 - s.min_ratio) + s.min_ratio);
}

// A run of no steps after its warm-up has none left.
double polynomial_factor(const LearningRateSchedule& s, std::int64_t step) {
  const double end = s.peak > 0 ? s.end / s.peak : 0;
  if (step > s.total_steps || s.total_steps <= s.warmup_steps) return end;
  const double left = 1 - progress_of(s, step);
  return (1 - end) * std::pow(left, s.power) + end;
}

double inverse_sqrt_factor(const LearningRateSchedule& s, std::int64_t step) {
  const std::int64_t own = s.warmup_steps > 0 ? s.warmup_steps : timescale_without_warmup;
  const std::int64_t timescale = s.timescale > 0 ? s.timescale : own;
  return 1 / std::sqrt(ratio(step + timescale - s.warmup_steps, timescale));
}

double factor(const LearningRateSchedule& s, std::int64_t step) {
  if (s.kind == ScheduleKind::constant) return 1;
  if (step < s.warmup_steps) {
    const double rise = ratio(step, s.warmup_steps);
    return s.kind == ScheduleKind::warmup_stable_decay ? rise * (1 - s.min_ratio) + s.min_ratio
                                                       : rise;
  }
  switch (s.kind) {
    case ScheduleKind::linear:
      return linear_factor(s, step);
    case ScheduleKind::cosine:
    case ScheduleKind::cosine_with_min_lr:
      return cosine_factor(s, step);
    case ScheduleKind::cosine_with_restarts:
      return restarting_cosine_factor(s, step);
    case ScheduleKind::polynomial:
      return polynomial_factor(s, step);
    case ScheduleKind::inverse_sqrt:
      return inverse_sqrt_factor(s, step);
    case ScheduleKind::warmup_stable_decay:
      return stable_decay_factor(s, step);
    case ScheduleKind::constant:
    case ScheduleKind::constant_with_warmup:
      break;
  }
  return 1;
}

}  // namespace

double LearningRateSchedule::rate(std::int64_t step) const { return peak * factor(*this, step); }

ScheduleKind parse_schedule(std::string_view name) {
  for (const auto& [known, kind] : schedule_names)
    if (known == name) return kind;
  std::string known_names;
  for (const auto& [known, kind] : schedule_names) known_names += fmt::format(" {}", known);
  throw ConfigError(
      fmt::format("lr_scheduler_type '{}' is not supported; known are:{}", name, known_names));
}

std::string_view schedule_name(ScheduleKind kind) {
  const auto* named =
      std::ranges::find(schedule_names, kind, &decltype(schedule_names)::value_type::second);
  ensure(named != schedule_names.end());
  return named->first;
}

}  // namespace strata
