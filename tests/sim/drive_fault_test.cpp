// A drive that fails under a training run, at any of its transfers: the run ends with an error that
// says which op, tile, file and why; nothing hangs, the process goes on, scratch is gone, and what
// was exported before is untouched.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>

#include "sim/tiny_training.hpp"
#include "strata/core/error.hpp"
#include "support/faulty_engine.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::difference;
using testing::Fault;
using testing::FaultKind;
using testing::FaultyEngine;
using testing::fresh_folder;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::read_bytes;
using testing::rounds;
using testing::tiny_config;
using testing::tiny_files;
using testing::TrainingRun;

// Two steps with everything on the drive, an evaluation before and after.
RunConfig short_run() {
  RunConfig config = tiny_config(tiny_files(60));
  config.max_steps = 2;
  config.eval_steps = 0;
  OffloadConfig& o = config.offload;
  for (TierFractions* role :
       {&o.weights, &o.gradients, &o.master, &o.moment1, &o.moment2, &o.activations})
    *role = {0, 0, 1};
  o.tile_bytes = 256 << 10;
  o.state_slots = 2;
  o.io_engine = "threads";
  return config;
}

// A drive, and a model exported before, that outlive the runs.
class DriveFault : public ::testing::TestWithParam<ExecutionMode> {
 protected:
  void SetUp() override {
    config_.offload.nvme_paths = {drive_.string()};
    earlier_ = exported_by(expected_);
    transfers_ = run_with({});
  }
  void TearDown() override {
    EXPECT_EQ(read_bytes(earlier_), expected_.weights) << "an earlier export has changed";
    EXPECT_EQ(difference(expected_, testing::train(config_)), "") << "a later run is not the same";
    fs::remove_all(drive_);
    fs::remove_all(earlier_.parent_path());
  }

  // Trains and exports on a drive that has `fault`. Returns the transfers made; throws what ends
  // the run.
  std::uint64_t run_with(const Fault& fault) {
    const FaultyEngine* engine = nullptr;
    TrainingRun run(config_, {GetParam(), fault.at}, [&](const OffloadConfig& offload) {
      auto made = std::make_unique<FaultyEngine>(make_offload_engine(offload), fault);
      engine = made.get();
      return made;
    });
    run.train();
    run.exported_weights();
    return engine->transfers();
  }
  std::string error_of(const Fault& fault) {
    try {
      run_with(fault);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  void expect_clear(const std::string& error, const std::string& reason, std::uint64_t at) const {
    EXPECT_THAT(error, HasSubstr(reason)) << "transfer " << at;
    EXPECT_THAT(error, HasSubstr(drive_.string())) << "transfer " << at;
    if (at < transfers_of_probe) return;
    EXPECT_THAT(error, ::testing::ContainsRegex("(read|write) on lane|cannot (load|store)"));
    EXPECT_THAT(error, HasSubstr(" tile ")) << "transfer " << at;
  }
  // Every `stride`-th transfer on threads, a sample of them elsewhere and under a sanitizer.
  void expect_clear_at_each(std::uint64_t transfers, int stride, Fault fault,
                            const std::string& reason) {
    const int plain = GetParam() == ExecutionMode::threaded ? stride : 17;
    const auto step = static_cast<std::uint64_t>(rounds(plain, 53));
    for (fault.at %= step; fault.at < transfers; fault.at += step) {
      expect_clear(error_of(fault), reason, fault.at);
      EXPECT_TRUE(fs::is_empty(drive_)) << "scratch is left after transfer " << fault.at;
    }
  }

  static constexpr std::uint64_t transfers_of_probe = 2;
  RunConfig config_ = short_run();
  fs::path drive_ = fresh_folder("drive"), earlier_;
  Outcome expected_;
  std::uint64_t transfers_ = 0;

 private:
  fs::path exported_by(Outcome& outcome) {
    outcome = testing::train(config_);
    const fs::path file = fresh_folder("earlier") / "model.safetensors";
    std::ofstream(file, std::ios::binary) << outcome.weights;
    return file;
  }
};

INSTANTIATE_TEST_SUITE_P(Executing, DriveFault,
                         ::testing::Values(ExecutionMode::threaded, ExecutionMode::serial,
                                           ExecutionMode::seeded),
                         [](const auto& mode) {
                           return mode.param == ExecutionMode::threaded ? "OnThreads"
                                  : mode.param == ExecutionMode::serial ? "Serially"
                                                                        : "InAnyOrder";
                         });

TEST_P(DriveFault, EndsTheRunClearlyAtEachTransferThatFails) {
  expect_clear_at_each(transfers_, 1, {.at = 0, .error_number = EIO}, "Input/output error");
}

TEST_P(DriveFault, EndsTheRunClearlyAtEachWriteThatFindsTheDriveFull) {
  const Fault full{.at = 3, .error_number = ENOSPC, .op = IoOp::write};
  const std::uint64_t writes = run_with({.op = IoOp::write});
  ASSERT_GT(writes, 20u);
  expect_clear_at_each(writes, 5, full, "No space left on device");
}

// Nothing can be removed from a drive that is gone.
TEST_P(DriveFault, EndsTheRunClearlyWhereverTheDriveDisappears) {
  Fault gone{.at = 5, .kind = FaultKind::disk_gone, .error_number = ENODEV};
  const auto stride = static_cast<std::uint64_t>(rounds(19, 151));
  for (; gone.at < transfers_; gone.at += stride) {
    expect_clear(error_of(gone), "No such device", gone.at);
    fs::remove_all(drive_);
    fs::create_directory(drive_);
  }
}

TEST_P(DriveFault, IsFoundInEachReadThatComesBackChangedWhenVerified) {
  config_.offload.verify_nvme = true;
  const std::uint64_t reads = run_with({.op = IoOp::read});
  expect_clear_at_each(reads, 3, {.at = 1, .kind = FaultKind::flips_a_bit, .op = IoOp::read}, "");
}

// What a disk does to bytes at rest.
TEST_P(DriveFault, IsFoundInTilesThatChangeOnDiskWhenVerified) {
  config_.offload.verify_nvme = true;
  TrainingRun run(config_, {GetParam(), 1});
  for (const auto& entry : fs::recursive_directory_iterator(drive_)) {
    if (entry.path().filename() != "tiles") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    for (std::uintmax_t at = 0; at < fs::file_size(entry.path()); at += 4096)
      file.seekp(static_cast<std::streamoff>(at)).put('\x5a');
    ASSERT_TRUE(file.flush().good());
  }
  try {
    run.train();
    FAIL() << "damage was not seen";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(" tile "));
    EXPECT_THAT(error.what(), HasSubstr(drive_.string()));
  }
}

}  // namespace
}  // namespace strata
