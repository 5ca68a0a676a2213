// A disk that fills up, fails or loses power under the checkpoints of a training run, at every
// operation that saving, verifying and removing them makes: the run goes on to the same bits, every
// failure is told, and what is listed afterwards is whole and can be gone on from.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "sim/resumed_run.hpp"
#include "support/one_fault_engine.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::difference_after;
using testing::fresh_folder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::OneFaultEngine;
using testing::ResumeBench;
using testing::rounds;
using testing::RunTrail;
using Lasting = testing::OneFault::Lasting;

constexpr std::uint64_t never = ~std::uint64_t{0};
constexpr std::int64_t faulty_last_step = 4;

// A sample of them under a sanitizer.
std::uint64_t every(int plain, int fewer) {
  return static_cast<std::uint64_t>(rounds(plain, fewer));
}

// Saves twice, and the second takes the place of the first. All state is in memory: nothing but
// checkpoints is on the disk that fails.
RunConfig run_that_saves() {
  RunConfig config = testing::tiny_config(testing::one_layer_files());
  config.max_steps = faulty_last_step;
  config.gradient_accumulation_steps = 1;
  config.evaluate = false;
  config.save_steps = 2;
  config.save_total_limit = 1;
  config.output_dir = fresh_folder("run");
  return config;
}

std::vector<CheckpointEntry> cleared(IoEngine& engine, const std::string& folder) {
  clear_unfinished_checkpoints(engine.file_system(), folder);
  return list_checkpoints(engine.file_system(), folder);
}

class SaveFault : public ::testing::Test {
 protected:
  // What comes of a run, whatever its disk does.
  const RunTrail& expected(int world) {
    auto& trail = expected_[world];
    if (trail.steps.empty()) trail = ResumeBench().train(run_that_saves(), world);
    EXPECT_EQ(trail.steps.size(), static_cast<std::size_t>(faulty_last_step));
    return trail;
  }
  void expect_whole(IoEngine& engine, const std::vector<CheckpointEntry>& listed) {
    for (const CheckpointEntry& entry : listed) {
      const auto reader = CheckpointReader::open(engine, entry.path);
      EXPECT_THAT(reader->verify(), IsEmpty()) << entry.path;
      EXPECT_EQ(reader->info().note.step, entry.step);
    }
  }
  void expect_resumes(ResumeBench& bench, const CheckpointEntry& from, int world) {
    RunConfig config = run_that_saves();
    const RunTrail resumed = bench.train(config, world, from.path);
    EXPECT_EQ(difference_after(from.step, expected(world), resumed), "") << from.path;
    fs::remove_all(config.output_dir);
  }

 private:
  std::map<int, RunTrail> expected_;
};

struct PlannedFault {
  std::uint64_t at = never;  // operations before it, from the beginning of the run
  int error_number = 0;
  Lasting lasting = Lasting::once;
};

// One operation fails, or all from it on.
class OneSaveFault : public SaveFault {
 protected:
  std::uint64_t operations(int world) {
    const auto engine = new_engine();
    const RunConfig config = run_that_saves();
    ResumeBench bench(engine);
    train_with_fault(*engine, bench, config, world, {});
    fs::remove_all(config.output_dir);
    return engine->fault().count();
  }
  void expect_harmless(int world, std::uint64_t at, int error_number, Lasting lasting) {
    SCOPED_TRACE("operation " + std::to_string(at) + ", errno " + std::to_string(error_number) +
                 ", ranks " + std::to_string(world));
    const auto engine = new_engine();
    ResumeBench bench(engine);
    const RunConfig config = run_that_saves();
    const RunTrail trail =
        train_with_fault(*engine, bench, config, world, {at, error_number, lasting});
    EXPECT_EQ(difference_after(0, expected(world), trail), "");
    const auto listed = cleared(*engine, config.output_dir.string());
    expect_whole(*engine, listed);
    if (lasting == Lasting::once) {
      EXPECT_THAT(listed, Not(IsEmpty()));
    }
    // Who says nothing has done it all.
    if (trail.said_of_saves.empty()) {
      ASSERT_EQ(listed.size(), 1u);
      EXPECT_EQ(listed[0].step, faulty_last_step);
    }
    if (!listed.empty() && at % 8 == 0) expect_resumes(bench, listed.back(), world);
    fs::remove_all(config.output_dir);
  }
  static RunTrail train_with_fault(OneFaultEngine& engine, ResumeBench& bench,
                                   const RunConfig& config, int world, const PlannedFault& fault) {
    const RunTrail trail = bench.train(config, world, "", [&](const testing::ResumedRank& rank) {
      if (rank.rank == 0) engine.fault().arm(fault.at, fault.error_number, fault.lasting);
    });
    engine.fault().disarm();
    return trail;
  }
  static std::shared_ptr<OneFaultEngine> new_engine() {
    return std::make_shared<OneFaultEngine>(make_sim_engine({}));
  }
};

TEST_F(OneSaveFault, OfAFullDiskIsToldAndHarmless) {
  const std::uint64_t all = operations(1);
  EXPECT_GT(all, 100u);
  for (std::uint64_t at = 0; at < all && !HasFailure(); at += every(1, 23))
    expect_harmless(1, at, ENOSPC, Lasting::once);
}

TEST_F(OneSaveFault, OfADriveIsToldAndHarmless) {
  const std::uint64_t all = operations(1);
  for (std::uint64_t at = 0; at < all && !HasFailure(); at += every(1, 23))
    expect_harmless(1, at, EIO, Lasting::once);
}

TEST_F(OneSaveFault, ThatStaysIsToldAndHarmless) {
  const std::uint64_t all = operations(1);
  for (const int error_number : {ENOSPC, EIO})
    for (std::uint64_t at = 0; at < all && !HasFailure(); at += every(5, 53))
      expect_harmless(1, at, error_number, Lasting::from_then_on);
}

TEST_F(OneSaveFault, OfOneRankIsToldAndHarmlessToAll) {
  const std::uint64_t all = operations(3);
  for (const int error_number : {ENOSPC, EIO})
    for (std::uint64_t at = 0; at < all && !HasFailure(); at += every(13, 97))
      expect_harmless(3, at, error_number, Lasting::once);
}

TEST_F(OneSaveFault, EndsTheRunWhereItIsToldTo) {
  const std::uint64_t first_save = operations(1) / 2;
  // Before it stands: what fails afterwards is a warning.
  for (const std::uint64_t at : {first_save / 8, first_save / 4, first_save / 2}) {
    const auto engine = new_engine();
    RunConfig config = run_that_saves();
    config.on_save_failure = SaveFailurePolicy::stop;
    config.max_steps = 400;
    config.save_steps = 20;
    ResumeBench bench(engine);
    const RunTrail trail = train_with_fault(*engine, bench, config, 1, {at, ENOSPC, Lasting::once});
    EXPECT_THAT(trail.outcomes[0].failure, HasSubstr("no checkpoint at step 20")) << at;
    EXPECT_LE(trail.outcomes[0].steps, 40);  // The next save, at the latest, finds out.
    fs::remove_all(config.output_dir);
  }
}

class SavePowerCut : public SaveFault {
 protected:
  // `first_save`: the changes that it takes.
  void expect_harmless(std::uint64_t seed, std::uint64_t after, int world,
                       std::uint64_t first_save) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", change " + std::to_string(after));
    ResumeBench bench({.seed = seed});
    RunConfig config = run_that_saves();
    bench.make_lasting_folders(config);
    bench.disk().power_fails_at(bench.disk().changes() + after);
    const RunTrail trail = bench.train(config, world);
    EXPECT_EQ(difference_after(0, expected(world), trail), "");
    EXPECT_THAT(trail.said_of_saves, Not(IsEmpty()));
    bench.disk().cut_power();
    const auto listed = cleared(bench.disk(), config.output_dir.string());
    expect_whole(bench.disk(), listed);
    if (after > first_save) {
      EXPECT_THAT(listed, Not(IsEmpty())) << "the first was saved before the power failed";
    }
    if (!listed.empty() && after % 8 == 0) expect_resumes(bench, listed.back(), world);
    fs::remove_all(config.output_dir);
  }
  static std::uint64_t changes_of(std::int64_t max_steps, int world) {
    ResumeBench bench;
    RunConfig config = run_that_saves();
    config.max_steps = max_steps;
    bench.make_lasting_folders(config);
    const std::uint64_t before = bench.disk().changes();
    bench.train(config, world);
    fs::remove_all(config.output_dir);
    return bench.disk().changes() - before;
  }
};

TEST_F(SavePowerCut, AtAnyChangeLeavesTheLastGoodCheckpoint) {
  const std::uint64_t all = changes_of(faulty_last_step, 1), first = changes_of(2, 1);
  ASSERT_GT(all, first + 20);
  for (const std::uint64_t seed : {0, 1})
    for (std::uint64_t at = 0; at < all && !HasFailure(); at += every(1, 23))
      expect_harmless(seed, at, 1, first);
}

TEST_F(SavePowerCut, UnderThreeRanksLeavesTheLastGoodCheckpoint) {
  const std::uint64_t all = changes_of(faulty_last_step, 3), first = changes_of(2, 3);
  for (std::uint64_t at = 0; at < all && !HasFailure(); at += every(13, 97))
    expect_harmless(2, at, 3, first);
}

}  // namespace
}  // namespace strata
