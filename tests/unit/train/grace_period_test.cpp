// What ending a run takes, against what the scheduler gives it.

#include "strata/train/grace_period.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/train/checkpoints.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr StopTime long_step{20, 5}, long_save{5, 20};

TEST(GracePeriod, IsToldToFitOrNot) {
  EXPECT_THAT(format_stop(long_step, 25),
              AllOf(HasSubstr("25.0 s at most: 20.0 s to end a step, 5.00 s to save"),
                    HasSubstr("; fits in grace_period: 25")));
  EXPECT_THAT(format_stop(long_step, 24.5), HasSubstr("does NOT fit in grace_period: 24.5"));
  EXPECT_THAT(format_stop(long_step, 0), AllOf(HasSubstr("not told"), Not(HasSubstr("fit"))));
  EXPECT_THAT(format_stop({20, 0}, 30), HasSubstr("not known"));
}

TEST(GracePeriod, IsWarnedOfWithWhatToChange) {
  EXPECT_EQ(grace_warning(long_step, 25, "measured"), "");
  EXPECT_EQ(grace_warning(long_step, 0, "measured"), "") << "nobody told it";
  EXPECT_EQ(grace_warning({20, 0}, 10, "measured"), "") << "half of it is not known";
  EXPECT_THAT(grace_warning(long_step, 24, "measured"),
              AllOf(HasSubstr("measured to take 25.0 s"), HasSubstr("grace_period: 24:"),
                    HasSubstr("gradient_accumulation_steps")));
  EXPECT_THAT(grace_warning(long_save, 24, "predicted"),
              AllOf(HasSubstr("predicted to take 25.0 s"), HasSubstr("output_dir on a faster")));
}

class PredictedStop : public ::testing::Test {
 protected:
  PredictedStop() {
    machine_.drives = {{.read_bytes_per_s = 2e6, .write_bytes_per_s = 2e6},
                       {.read_bytes_per_s = 4e6, .write_bytes_per_s = 1e6}};
  }
  StopTime stop() const {
    return predicted_stop(config_, plan_run(config_, Purpose::train), 3, machine_);
  }
  double megabytes() const {
    return static_cast<double>(
               checkpoint_demand(config_, plan_run(config_, Purpose::train)).bytes) /
           1e6;
  }

  static constexpr double padding = 0.1;  // what homes of small tiles are rounded up by, at most
  double homes_on_nvme(Role role) const {
    const PlannedRun run = plan_run(config_, Purpose::train);
    double bytes = 0;
    for (const Usage& usage : run.plan.usage)
      if (usage.is_home && usage.role == role) bytes += static_cast<double>(usage.bytes[2]);
    return bytes / 1e6;
  }

  // The fifth on top, and what saves reach of a drive's rates.
  static constexpr double caution = 1.2, of_save = caution / 0.7;

  const testing::TrainingFiles files_ = testing::make_training_files(random_model_preset("tiny"));
  RunConfig config_ = testing::tiny_config(files_);
  MachineProfile machine_;
};

// Nobody knows which drive output_dir is on: on that which takes new files slowest.
TEST_F(PredictedStop, IsAStepAndACheckpointWrittenAndReadBack) {
  EXPECT_DOUBLE_EQ(stop().step_seconds, caution * 3);
  EXPECT_NEAR(stop().save_seconds, of_save * megabytes() * (1 + 0.25), 1e-9);
  machine_.drives[0].new_file_bytes_per_s = 0.5e6;
  EXPECT_NEAR(stop().save_seconds, of_save * megabytes() * (2 + 0.5), 1e-9);
}

TEST_F(PredictedStop, ReadsFirstWhatLiesOnNvme) {
  const double from_memory = stop().save_seconds;
  config_.offload.nvme_paths = {::testing::TempDir()};
  config_.offload.master = {0, 0.5, 0.5};
  config_.offload.moment1 = config_.offload.moment2 = {0, 0, 1};
  const double masters = homes_on_nvme(Role::master), moments = homes_on_nvme(Role::moment1);
  EXPECT_GT(masters, 0);
  EXPECT_LT(masters, moments);
  const double read = of_save * (masters + 2 * moments) / 2;  // by one rank, from the slower drive
  EXPECT_NEAR(stop().save_seconds, from_memory + read, padding * read);
  config_.save_only_model = true;
  const double weights = stop().save_seconds;
  config_.offload.weights = {0, 0, 1};
  const double weights_read = of_save * homes_on_nvme(Role::weight) / 2;
  EXPECT_NEAR(stop().save_seconds, weights + weights_read, padding * weights_read);
}

TEST_F(PredictedStop, IsAStepAndTheWeightsWhereNoStateIsSaved) {
  config_.save_only_model = true;
  EXPECT_NEAR(stop().save_seconds, of_save * megabytes() * (1 + 0.25), 1e-9);
  const double weights = stop().save_seconds;
  config_.save_strategy = SaveStrategy::no;
  EXPECT_NEAR(stop().save_seconds, weights, 1e-9);
}

TEST_F(PredictedStop, IsNotKnownWithoutADrive) {
  machine_.drives.clear();
  EXPECT_FALSE(stop().is_known());
}

}  // namespace
}  // namespace strata
