// The best checkpoint of a run: what each tells of its loss, that none of the runs that go on, of
// the disks that fail and of the power cuts loses the best, and what is exported at the end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>

#include "sim/resumed_run.hpp"
#include "strata/train/best_export.hpp"
#include "support/one_fault_engine.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::checkpoint_of;
using testing::difference_after;
using ::testing::ElementsAre;
using testing::fresh_folder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OneFaultEngine;
using testing::ResumeBench;
using testing::ResumedRank;
using testing::rounds;
using testing::RunTrail;
using Lasting = testing::OneFault::Lasting;

constexpr std::int64_t best_last_step = 6;

// A rate that grows until steps overshoot: the held-out loss falls and rises.
RunConfig overshooting_run() {
  RunConfig config = testing::tiny_config(testing::one_layer_files());
  config.max_steps = best_last_step;
  config.gradient_accumulation_steps = 1;
  config.lr_scheduler_type = ScheduleKind::constant_with_warmup;
  config.warmup_steps = 10;
  config.learning_rate = 0.2;
  config.max_grad_norm = 0;
  config.eval_steps = config.save_steps = 1;
  config.save_total_limit = 1;
  config.load_best_model_at_end = true;
  config.output_dir = fresh_folder("run");
  return config;
}

std::vector<std::int64_t> steps_in(IoEngine& engine, const RunConfig& config) {
  std::vector<std::int64_t> steps;
  for (const auto& entry : list_checkpoints(engine.file_system(), config.output_dir.string()))
    steps.push_back(entry.step);
  return steps;
}

// The earliest of the least.
std::int64_t best_of(const std::map<std::int64_t, double>& losses,
                     const std::vector<std::int64_t>& steps) {
  return *std::ranges::min_element(
      steps, {}, [&](std::int64_t step) { return std::pair(losses.at(step), step); });
}

class BestOfRun : public ::testing::Test {
 protected:
  // What a run whose disk is well gives.
  const RunTrail& whole(int world) {
    RunTrail& trail = whole_[world];
    if (!trail.steps.empty()) return trail;
    trail = ResumeBench().train(overshooting_run(), world);
    best_[world] = best_of(trail.held_out, {1, 2, 3, 4, 5, 6});
    EXPECT_LT(best_[world], best_last_step) << "or nothing is kept that would not be anyway";
    EXPECT_GT(best_[world], 1);
    return trail;
  }
  std::int64_t best(int world) {
    whole(world);
    return best_[world];
  }
  // Whatever is there tells the loss of its state, and the best of what was saved is there.
  void expect_best_kept(IoEngine& engine, const RunConfig& config, int world,
                        std::vector<std::int64_t> saved) {
    const std::string folder = config.output_dir.string();
    clear_unfinished_checkpoints(engine.file_system(), folder);
    const HeldOutLosses losses = held_out_losses(engine, folder);
    const std::vector<std::int64_t> there = steps_in(engine, config);
    EXPECT_EQ(losses.size(), there.size());
    for (const auto& [step, held_out] : losses)
      EXPECT_EQ(held_out.loss, whole(world).held_out.at(step)) << step;
    if (saved.empty()) return;
    EXPECT_THAT(there, ::testing::Contains(best_of(whole(world).held_out, saved)));
    for (const std::int64_t step : there)
      EXPECT_THAT(CheckpointReader::open(engine, checkpoint_of(config, step))->verify(), IsEmpty());
  }

 private:
  std::map<int, RunTrail> whole_;
  std::map<int, std::int64_t> best_;
};

TEST_F(BestOfRun, IsKeptBesideTheLast) {
  for (const int world : {1, 3})
    for (const bool along : {true, false}) {
      ResumeBench bench;
      RunConfig config = overshooting_run();
      config.save_in_background = along;
      const RunTrail trail = bench.train(config, world);
      EXPECT_EQ(difference_after(0, whole(world), trail), "");
      EXPECT_THAT(trail.saved, ElementsAre(1, 2, 3, 4, 5, 6));
      EXPECT_THAT(steps_in(bench.disk(), config), ElementsAre(best(world), best_last_step));
      expect_best_kept(bench.disk(), config, world, trail.saved);
    }
}

TEST_F(BestOfRun, TakesThePlaceOfAnotherWhereSeveralAreKept) {
  ResumeBench bench;
  RunConfig config = overshooting_run();
  config.save_total_limit = 2;
  bench.train(config, 1);
  EXPECT_THAT(steps_in(bench.disk(), config), ElementsAre(best(1), best_last_step));
}

TEST_F(BestOfRun, IsKeptForTheMetricAloneAndNotWithoutIt) {
  ResumeBench bench;
  RunConfig metric = overshooting_run(), plain = overshooting_run();
  metric.load_best_model_at_end = plain.load_best_model_at_end = false;
  metric.metric_for_best_model = BestMetric::held_out_loss;
  bench.train(metric, 1);
  EXPECT_THAT(steps_in(bench.disk(), metric), ElementsAre(best(1), best_last_step));
  bench.train(plain, 1);
  EXPECT_THAT(steps_in(bench.disk(), plain), ElementsAre(best_last_step));
}

// Shares of six steps: evaluations every 2, rounded up, and saves every 3.
TEST_F(BestOfRun, IsOfCheckpointsThatWereAllEvaluated) {
  ResumeBench bench;
  RunConfig config = overshooting_run();
  config.save_steps = 0.45;
  config.eval_steps = 0.225;
  const RunTrail trail = bench.train(config, 1);
  EXPECT_THAT(trail.saved, ElementsAre(3, 6));
  EXPECT_EQ(trail.held_out.size(), 5u) << "0, 2, 3, 4, 6";
  EXPECT_EQ(held_out_losses(bench.disk(), config.output_dir.string()).size(), 2u);
}

TEST_F(BestOfRun, IsKnownToTheRunThatGoesOn) {
  for (const int world : {1, 3})
    for (std::int64_t stopped = 1; stopped < best_last_step; ++stopped) {
      SCOPED_TRACE(stopped);
      ResumeBench bench;
      RunConfig config = overshooting_run();
      config.max_steps = stopped;
      bench.train(config, world);
      config.max_steps = best_last_step;
      config.resume_from_checkpoint = "true";
      const RunTrail resumed = bench.go_on(config, world);
      EXPECT_EQ(difference_after(stopped, whole(world), resumed), "");
      EXPECT_THAT(steps_in(bench.disk(), config), ElementsAre(best(world), best_last_step));
      expect_best_kept(bench.disk(), config, world, {best(world)});
      if (world > 1) ++stopped;
    }
}

// What was taken on other data is no loss to compare with.
TEST_F(BestOfRun, BeginsAnewWithOtherHeldOutData) {
  ResumeBench bench;
  RunConfig config = overshooting_run();
  config.max_steps = best(1);
  bench.train(config, 1);
  config.max_steps = best(1) + 1;
  config.eval_dataset = {testing::one_layer_files().train_shard};
  config.resume_from_checkpoint = "true";
  bench.go_on(config, 1);
  EXPECT_THAT(steps_in(bench.disk(), config), ElementsAre(best(1) + 1));
}

TEST_F(BestOfRun, IsNoneWhoseLossIsNotFinite) {
  RunConfig config = overshooting_run();
  config.max_steps = 2;
  config.non_finite = NonFinitePolicy::skip_step;
  config.lr_scheduler_type = ScheduleKind::constant;
  config.warmup_steps = 0;
  config.learning_rate = 1e39;  // more than an f32 holds
  testing::TrainingRun run(config);
  run.train();
  IoEngine& engine = run.session().engine();
  EXPECT_FALSE(best_checkpoint(engine, run.output_dir().string()));
  EXPECT_EQ(list_checkpoints(engine.file_system(), run.output_dir().string()).size(), 1u);
}

TEST_F(BestOfRun, OutlivesADiskThatFailsOnce) {
  const auto count = [&] {
    const auto engine = std::make_shared<OneFaultEngine>(make_sim_engine({}));
    ResumeBench(engine).train(overshooting_run(), 1, "", [&](const ResumedRank&) {
      engine->fault().arm(~std::uint64_t{0}, EIO, Lasting::once);
    });
    return engine->fault().count();
  };
  const std::uint64_t all = count();
  ASSERT_GT(all, 200u);
  const auto every = static_cast<std::uint64_t>(rounds(13, 97));
  for (const int error_number : {ENOSPC, EIO})
    for (const Lasting lasting : {Lasting::once, Lasting::from_then_on})
      for (std::uint64_t at = error_number == EIO ? 3 : 0; at < all && !HasFailure(); at += every) {
        SCOPED_TRACE("operation " + std::to_string(at));
        const auto engine = std::make_shared<OneFaultEngine>(make_sim_engine({}));
        const RunConfig config = overshooting_run();
        const RunTrail trail = ResumeBench(engine).train(config, 1, "", [&](const ResumedRank&) {
          engine->fault().arm(at, error_number, lasting);
        });
        engine->fault().disarm();
        EXPECT_EQ(difference_after(0, whole(1), trail), "");
        expect_best_kept(*engine, config, 1, trail.saved);
        fs::remove_all(config.output_dir);
      }
}

// And what goes on from there ends as a run does that nothing happened to.
TEST_F(BestOfRun, OutlivesAPowerCutAtAnyChange) {
  std::uint64_t all = 0;
  {
    ResumeBench bench;
    const RunConfig config = overshooting_run();
    bench.make_lasting_folders(config);
    const std::uint64_t before = bench.disk().changes();
    bench.train(config, 1);
    all = bench.disk().changes() - before;
  }
  const auto every = static_cast<std::uint64_t>(rounds(13, 61));
  for (std::uint64_t at = 0; at < all && !HasFailure(); at += every) {
    SCOPED_TRACE("change " + std::to_string(at));
    ResumeBench bench({.seed = at});
    RunConfig config = overshooting_run();
    bench.make_lasting_folders(config);
    bench.disk().power_fails_at(bench.disk().changes() + at);
    const RunTrail cut = bench.train(config, 1);
    bench.disk().cut_power();
    expect_best_kept(bench.disk(), config, 1, cut.saved);
    const std::vector<std::int64_t> there = steps_in(bench.disk(), config);
    config.resume_from_checkpoint = "true";
    const RunTrail resumed = bench.go_on(config, 1);
    EXPECT_EQ(difference_after(there.empty() ? 0 : there.back(), whole(1), resumed), "");
    // Where all had been saved, nothing was left to do, nor to remove.
    if (there.empty() || there.back() < best_last_step) {
      EXPECT_THAT(steps_in(bench.disk(), config), ElementsAre(best(1), best_last_step));
    }
    expect_best_kept(bench.disk(), config, 1, {best(1)});
    fs::remove_all(config.output_dir);
  }
}

// What the ranks of a run come to at its end.
struct AtEnd {
  std::string text, failure;
  bool is_of_checkpoint = false, is_written = false;
};

class BestAtEnd : public BestOfRun {
 protected:
  // Of the first rank; that all agree is checked.
  AtEnd export_best(ResumeBench& bench, const RunConfig& config, int world,
                    const std::function<void()>& before = {}) {
    AtEnd first;
    std::vector<AtEnd> of_ranks(static_cast<std::size_t>(world));
    bench.go_on(config, world, [&](ResumedRank& given) {
      given.at_end = [&, rank = given.rank](Session& session, const TrainOutcome& outcome) {
        if (rank == 0 && before) before();
        session.any_rank(false);
        BestExport best(config, session, outcome);
        AtEnd& own = of_ranks[static_cast<std::size_t>(rank)];
        own = {best.text(), best.failure(), best.is_of_checkpoint()};
        if (!best.is_of_checkpoint()) return;
        own.is_written = best.write(target_);
        own.failure = best.failure();
      };
    });
    for (const AtEnd& own : of_ranks) {
      EXPECT_EQ(own.is_of_checkpoint, of_ranks[0].is_of_checkpoint);
      EXPECT_EQ(own.is_written, of_ranks[0].is_written);
      EXPECT_EQ(own.failure, of_ranks[0].failure);
    }
    return of_ranks[0];
  }

  const fs::path folder_ = fresh_folder("exported"), target_ = folder_ / "export";
};

TEST_F(BestAtEnd, IsExportedAsARunThatEndedThereWouldHave) {
  for (const int world : {1, 3}) {
    RunConfig shorter = overshooting_run();
    shorter.max_steps = best(world);
    const std::string expected = ResumeBench().train(shorter, world).weights;
    ASSERT_NE(expected, whole(world).weights);
    ResumeBench bench;
    const AtEnd end = export_best(bench, overshooting_run(), world);
    EXPECT_EQ(end.failure, "");
    ASSERT_TRUE(end.is_written);
    EXPECT_EQ(testing::read_bytes(target_ / "model.safetensors"), expected);
    const auto& losses = whole(world).held_out;
    EXPECT_EQ(end.text, fmt::format("step {}: held-out loss {:.4f}; after the last step, {}, it is "
                                    "{:.4f}",
                                    best(world), losses.at(best(world)), best_last_step,
                                    losses.at(best_last_step)));
    fs::remove_all(target_);
  }
}

TEST_F(BestAtEnd, IsTheStateItselfWhereTheLastStepIsTheBest) {
  ResumeBench bench;
  RunConfig config = overshooting_run();
  config.max_steps = best(1);
  const AtEnd end = export_best(bench, config, 1);
  EXPECT_FALSE(end.is_of_checkpoint);
  EXPECT_THAT(end.text, HasSubstr(fmt::format("the last step, {}: held-out loss", best(1))));
}

// The weights at the end were evaluated too, though no save was due there.
TEST_F(BestAtEnd, IsTheLastStateWhereNoCheckpointIsBetter) {
  ResumeBench bench;
  RunConfig config = overshooting_run();
  config.max_steps = best(1);
  config.save_steps = config.eval_steps = static_cast<double>(best(1) - 1);
  const AtEnd end = export_best(bench, config, 1);
  EXPECT_FALSE(end.is_of_checkpoint);
  EXPECT_THAT(end.text, AllOf(HasSubstr(fmt::format("the last step, {}: held-out loss", best(1))),
                              HasSubstr("against"), HasSubstr(checkpoint_of(config, best(1) - 1))));
}

TEST_F(BestAtEnd, IsTheLastStateWhereNoCheckpointIsThere) {
  ResumeBench bench;
  RunConfig config = overshooting_run();
  config.save_steps = config.eval_steps = 100;
  const AtEnd end = export_best(bench, config, 1);
  EXPECT_FALSE(end.is_of_checkpoint);
  EXPECT_EQ(end.failure, "");
  EXPECT_THAT(end.text, HasSubstr("no checkpoint stands whose held-out loss was taken"));
}

TEST_F(BestAtEnd, IsMissedInSoManyWordsWhereItIsDamaged) {
  for (const int world : {1, 3}) {
    ResumeBench bench;
    const RunConfig config = overshooting_run();
    const std::string vector = checkpoint_of(config, best(world)) + "/00000-master.bin";
    const AtEnd end = export_best(bench, config, world, [&] {
      FileSystem& disk = bench.disk().file_system();
      auto bytes = disk.read_file(vector, 1 << 24);
      bytes[100] ^= std::byte{1};
      disk.write_file(vector, bytes);
    });
    EXPECT_TRUE(end.is_of_checkpoint);
    EXPECT_FALSE(end.is_written);
    EXPECT_THAT(end.failure, AllOf(HasSubstr("the best checkpoint's weights could not be exported"),
                                   HasSubstr("00000-master.bin")));
    EXPECT_TRUE(fs::is_empty(folder_));
  }
}

TEST_F(BestAtEnd, OfARunWhoseEveryStepIsDurableIsExportedTheSame) {
  ResumeBench plain, versioned;
  ASSERT_TRUE(export_best(plain, overshooting_run(), 1).is_written);
  const std::string expected = testing::read_bytes(target_ / "model.safetensors");
  fs::remove_all(target_);
  RunConfig config = overshooting_run();
  config.offload.versioned = true;
  config.offload.update_order = "deferred";
  config.offload.master = config.offload.moment1 = config.offload.moment2 = {0, 0, 1};
  ASSERT_TRUE(export_best(versioned, config, 1).is_written);
  EXPECT_EQ(testing::read_bytes(target_ / "model.safetensors"), expected);
}

}  // namespace
}  // namespace strata
