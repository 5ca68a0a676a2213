// Learning rates against transformers' get_scheduler (make_goldens.py).

#include <gtest/gtest.h>

#include "golden/optim/golden_file.hpp"
#include "strata/optim/schedule.hpp"

namespace strata {
namespace {

constexpr double tolerance = 1e-12;  // of the peak: double arithmetic on both sides

LearningRateSchedule schedule_of(const std::string& name, const std::vector<double>& options) {
  LearningRateSchedule schedule;
  schedule.kind = parse_schedule(name.substr(0, name.find('.')));
  schedule.peak = 1;
  schedule.warmup_steps = static_cast<std::int64_t>(options[0]);
  schedule.total_steps = static_cast<std::int64_t>(options[1]);
  schedule.decay_steps = static_cast<std::int64_t>(options[2]);
  schedule.min_ratio = options[3];
  schedule.num_cycles = options[4];
  if (options.size() == 5) return schedule;
  schedule.power = options[5];
  schedule.end = options[6];
  schedule.timescale = static_cast<std::int64_t>(options[7]);
  return schedule;
}

TEST(LearningRateSchedule, FollowsTransformersInEveryStep) {
  const testing::GoldenFile goldens("schedules.safetensors");
  ASSERT_GE(goldens.cases().size(), 17u);
  for (const std::string& name : goldens.cases()) {
    const LearningRateSchedule schedule = schedule_of(name, goldens.read(name + ".options"));
    const std::vector<double> rates = goldens.read(name + ".rates");
    for (std::size_t step = 0; step < rates.size(); ++step)
      EXPECT_NEAR(schedule.rate(static_cast<std::int64_t>(step)), rates[step], tolerance)
          << name << " step " << step;
  }
}

}  // namespace
}  // namespace strata
