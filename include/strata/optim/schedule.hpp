#pragma once
// Learning-rate schedules with the names and formulas of Hugging Face transformers
// (get_*_schedule), in optimizer steps. Pure functions; any thread.

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace strata {

enum class ScheduleKind : std::uint8_t {
  linear,
  cosine,
  constant,
  constant_with_warmup,
  warmup_stable_decay,
  cosine_with_min_lr,  // cosine, under the name that takes a floor
  cosine_with_restarts,
  polynomial,
  inverse_sqrt
};

// As they are called in configs.
inline constexpr std::array<std::pair<std::string_view, ScheduleKind>, 9> schedule_names{
    {{"linear", ScheduleKind::linear},
     {"cosine", ScheduleKind::cosine},
     {"constant", ScheduleKind::constant},
     {"constant_with_warmup", ScheduleKind::constant_with_warmup},
     {"warmup_stable_decay", ScheduleKind::warmup_stable_decay},
     {"cosine_with_min_lr", ScheduleKind::cosine_with_min_lr},
     {"cosine_with_restarts", ScheduleKind::cosine_with_restarts},
     {"polynomial", ScheduleKind::polynomial},
     {"inverse_sqrt", ScheduleKind::inverse_sqrt}}};

struct LearningRateSchedule {
  ScheduleKind kind = ScheduleKind::linear;
  double peak = 5e-5;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 1;
  std::int64_t decay_steps = 0;  // warmup_stable_decay: the last steps
  double min_ratio = 0;          // warmup_stable_decay and cosine: floor as a fraction of peak
  double num_cycles = 0.5;       // cosine: waves; cosine_with_restarts: falls from peak to 0
  double power = 1;              // polynomial
  double end = 1e-7;             // polynomial: the last rate
  std::int64_t timescale = 0;    // inverse_sqrt; 0: warmup_steps, or 10000

  // The rate used by optimizer step `step` (0-based).
  double rate(std::int64_t step) const;
};

ScheduleKind parse_schedule(std::string_view name);  // Throws ConfigError with the known names.
std::string_view schedule_name(ScheduleKind kind);

}  // namespace strata
