// A run is told to stop while an op of some kind begins on some lane: whichever it is, the run ends
// with a checkpoint that goes on to the same bits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <mutex>

#include "sim/rank_training.hpp"
#include "sim/resumed_run.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::difference_after;
using testing::fresh_folder;
using ::testing::IsEmpty;
using testing::ResumeBench;
using testing::ResumedRank;
using testing::rounds;
using testing::RunTrail;

constexpr std::int64_t stopped_last_step = 6;

// Where ops begin.
using Moment = std::pair<OpKind, Lane>;
std::string name_of(const Moment& moment) {
  return std::string(op_kind_name(moment.first)) + " on " + std::string(lane_name(moment.second));
}

class StopMoment : public ::testing::TestWithParam<int> {
 protected:
  // With an op of every kind: state on all tiers.
  RunConfig config() const {
    RunConfig config = testing::of_ranks(testing::tiny_config(files_), GetParam(), 3);
    config.max_steps = stopped_last_step;
    config.evaluate = false;
    config.save_steps = 2;
    config.save_total_limit = 2;
    config.offload.tile_bytes = 16 << 10;
    config.output_dir = fresh_folder("run");
    testing::place_state(config, {0.3, 0.3, 0.4});
    return config;
  }
  int asked_rank() const { return GetParam() - 1; }  // one that commits nothing, of several

  // An undisturbed run; counts how often an op begins at each moment.
  RunTrail whole_run() {
    std::mutex mutex;
    RunConfig whole = config();
    RunTrail trail = bench_.train(whole, GetParam(), "", [&](ResumedRank& rank) {
      if (rank.rank != asked_rank()) return;
      rank.executor.before_op = [&](const Op& op) {
        const std::lock_guard lock(mutex);
        ++counts_[{op.kind, op.lane}];
      };
    });
    fs::remove_all(whole.output_dir);
    return trail;
  }
  // Told to stop before the `at`-th op of that moment.
  RunTrail stopped_run(const RunConfig& config, const Moment& moment, int at) {
    std::atomic<bool> stop = false;
    std::atomic<int> count = 0;
    return bench_.train(config, GetParam(), "", [&](ResumedRank& rank) {
      if (rank.rank != asked_rank()) return;
      rank.stop = &stop;
      rank.executor.before_op = [&](const Op& op) {
        if (Moment{op.kind, op.lane} == moment && count++ == at) stop = true;
      };
    });
  }
  void expect_goes_on(const RunTrail& stopped, const RunTrail& whole) {
    EXPECT_TRUE(stopped.outcomes[0].stopped);
    ASSERT_FALSE(stopped.outcomes[0].checkpoint.empty());
    const auto reader = CheckpointReader::open(bench_.disk(), stopped.outcomes[0].checkpoint);
    EXPECT_THAT(reader->verify(), IsEmpty());
    ASSERT_EQ(reader->info().note.step, stopped.outcomes[0].steps);
    const RunConfig further = config();
    const RunTrail resumed = bench_.train(further, GetParam(), stopped.outcomes[0].checkpoint);
    EXPECT_EQ(difference_after(stopped.outcomes[0].steps, whole, resumed), "");
    fs::remove_all(further.output_dir);
  }

  const testing::TrainingFiles files_ =
      testing::make_training_files(random_model_preset("tiny"), 60);
  ResumeBench bench_;
  std::map<Moment, int> counts_;
};

INSTANTIATE_TEST_SUITE_P(Ranks, StopMoment, ::testing::Values(1, 3),
                         [](const auto& test) { return std::to_string(test.param); });

TEST_P(StopMoment, AtAnyOpKindOfAnyLaneEndsWithACheckpointToGoOnFrom) {
  const RunTrail whole = whole_run();
  EXPECT_GT(counts_.size(), GetParam() == 1 ? 12u : 14u);
  const int stride = rounds(1, 5);
  int number = 0;
  for (const auto& [moment, count] : counts_) {
    if (number++ % stride != 0) continue;
    SCOPED_TRACE(name_of(moment));
    const RunConfig stopping = config();
    // In the middle of the run.
    expect_goes_on(stopped_run(stopping, moment, count / 2), whole);
    fs::remove_all(stopping.output_dir);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace strata
