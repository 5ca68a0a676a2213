// What a run writes to a disk is added up per file system before it begins.

#include "strata/train/disk_space.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/train/checkpoints.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

// Everything on one file system, but for /far.
DiskLookup with_free(std::uint64_t near, std::uint64_t far = 0) {
  return [=](const std::string& directory) {
    return directory.starts_with("/far") ? Disk{2, far} : Disk{1, near};
  };
}

const std::vector<DiskDemand> three = {
    {"tiles", "/nvme", 5 * GiB}, {"a checkpoint", "/out", 4 * GiB}, {"the export", "/far", GiB}};

TEST(DiskSpace, IsAddedUpWhereAFileSystemIsShared) {
  EXPECT_NO_THROW(check_disk_space(three, with_free(9 * GiB, GiB)));
  EXPECT_THAT([] { check_disk_space(three, with_free(9 * GiB - 1, GiB)); },
              ThrowsMessage<ConfigError>(AllOf(
                  HasSubstr("9.00 GiB there in all"), HasSubstr("5.00 GiB for tiles in /nvme"),
                  HasSubstr("4.00 GiB for a checkpoint in /out"), HasSubstr("9.00 GiB are free"),
                  Not(HasSubstr("export in")))));
}

TEST(DiskSpace, IsNotAddedUpOverFileSystems) {
  EXPECT_THAT([] { check_disk_space(three, with_free(9 * GiB, GiB - 1)); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("file system of /far"),
                                               HasSubstr("1.00 GiB for the export in /far"),
                                               Not(HasSubstr("in all")))));
}

TEST(DiskSpace, OfKilledRunsCountsOncePerFolder) {
  const std::vector<DiskDemand> demands = {{"tiles", "/nvme", 5 * GiB},
                                           {"a checkpoint", "/nvme", 4 * GiB}};
  const auto left_behind = [](std::uint64_t bytes) {
    return [bytes](const std::string&) { return Disk{1, 6 * GiB, bytes}; };
  };
  EXPECT_NO_THROW(check_disk_space(demands, left_behind(3 * GiB)));
  EXPECT_THROW(check_disk_space(demands, left_behind(2 * GiB)), ConfigError);
}

class RunOnDisk : public ::testing::Test {
 protected:
  RunOnDisk() {
    config_.output_dir = testing::fresh_folder("space");
    config_.offload.nvme_paths = {testing::fresh_folder("nvme").string()};
    config_.offload.master = config_.offload.moment1 = config_.offload.moment2 = {0, 0, 1};
    config_.save_total_limit = 2;
    run_ = testing::plan_here(config_);
  }
  std::vector<DiskDemand> demands(bool saves) const {
    return disk_demands(config_, run_, {3, saves, config_.output_dir / "export"});
  }
  static std::uint64_t sum(const std::vector<DiskDemand>& demands) {
    std::uint64_t bytes = 0;
    for (const DiskDemand& demand : demands) bytes += demand.bytes;
    return bytes;
  }

  testing::TrainingFiles files_ = testing::make_training_files(random_model_preset("tiny"));
  RunConfig config_ = testing::tiny_config(files_);
  PlannedRun run_;
};

TEST_F(RunOnDisk, AsksForTheTilesOfAllRanksOneCheckpointAndTheExport) {
  const auto parameters = static_cast<std::uint64_t>(run_.model->num_parameters());
  const std::uint64_t tiles = 3 * run_.plan.tier_bytes[2];
  const std::uint64_t checkpoint = checkpoint_demand(config_, run_).bytes;
  ASSERT_GE(tiles, 3 * 12 * parameters);
  ASSERT_GE(checkpoint, 12 * parameters);
  EXPECT_EQ(sum(demands(true)), tiles + checkpoint + 2 * parameters);
  EXPECT_EQ(sum(demands(false)), tiles + 2 * parameters);
}

TEST_F(RunOnDisk, WarnsWhenTheCheckpointsThatAreKeptWillNotFit) {
  const auto wanted = demands(true);
  const std::uint64_t one = checkpoint_demand(config_, run_).bytes;
  const auto with = [](std::uint64_t free) {
    return [free](const std::string&) { return Disk{1, free}; };
  };
  EXPECT_EQ(retention_warning(config_, wanted, with(sum(wanted) + 2 * one)), "");
  EXPECT_THAT(retention_warning(config_, wanted, with(sum(wanted) + 2 * one - 1)),
              HasSubstr("the 2 checkpoints that save_total_limit keeps"));
  EXPECT_EQ(retention_warning(config_, demands(false), with(0)), "");
}

TEST_F(RunOnDisk, KeepsTheBestCheckpointBesideTheLast) {
  const std::uint64_t one = checkpoint_demand(config_, run_).bytes;
  const auto kept = [&](std::int64_t limit) {
    config_.save_total_limit = limit;
    return checkpoint_demand(config_, run_).bytes_kept;
  };
  EXPECT_EQ(kept(1), 2 * one);
  config_.load_best_model_at_end = true;
  EXPECT_EQ(kept(1), 3 * one) << "and one more while it is written";
  EXPECT_EQ(kept(2), 3 * one);
  EXPECT_EQ(kept(0), 0u);
}

// No guess of a file system: the real one, of a folder that is not there yet.
TEST(Disk, IsThatOfTheNearestFolderThatExists) {
  const auto folder = testing::fresh_folder("disk");
  EXPECT_EQ(disk_of((folder / "not/yet").string()).id, disk_of(folder.string()).id);
  EXPECT_GT(disk_of(folder.string()).free_bytes, 0u);
}

}  // namespace
}  // namespace strata
