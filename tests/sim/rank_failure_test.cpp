// One rank fails, wherever it is: the run ends at once with one reason, that of the rank which
// failed first, and nothing hangs. Ranks wait half an hour for each other here, so nothing but
// that reason can end them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <map>

#include "sim/rank_training.hpp"
#include "strata/core/error.hpp"
#include "strata/core/philox.hpp"
#include "support/faulty_engine.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::difference;
using testing::Fault;
using testing::FaultyEngine;
using testing::fresh_folder;
using ::testing::HasSubstr;
using testing::of_ranks;
using testing::Outcome;
using testing::place_state;
using testing::RankSetup;
using testing::RanksOptions;
using testing::rounds;
using ::testing::StartsWith;
using testing::tiny_config;
using testing::tiny_files;
using testing::train_on_ranks;
using Clock = std::chrono::steady_clock;

constexpr int world = 3;
constexpr int steps = 3;
constexpr auto moments = std::chrono::minutes(5);  // much less than ranks wait for each other

// With an op of every kind: state on all tiers, tiles of the optimizer everywhere.
RunConfig failing_run(int stage) {
  RunConfig config = of_ranks(tiny_config(tiny_files(60)), world, stage);
  config.max_steps = steps;
  config.evaluate = false;
  config.offload.tile_bytes = 16 << 10;
  place_state(config, {0.3, 0.3, 0.4});
  return config;
}

EngineFactory sim_engine() {
  return [](const OffloadConfig& offload) { return testing::make_sim_engine_for(offload); };
}

// What ends a run that must not end well, soon.
std::string error_of(const RunConfig& config, const RanksOptions& options) {
  const auto begin = Clock::now();
  std::string error = "no error";
  try {
    train_on_ranks(config, options);
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  EXPECT_LT(Clock::now() - begin, moments) << error;
  return error;
}

// Fails one op of the training step in one step of one rank.
struct PlantedFault {
  int rank = 0, step = 0;
  OpId id;
  RanksOptions options(const ExecutorOptions& executor) const {
    RanksOptions options;
    options.executor = executor;
    options.make_engine = sim_engine();
    options.change = [fault = *this](RankSetup& setup) {
      if (setup.rank != fault.rank) return;
      // An op is on one lane: no two threads count.
      setup.executor.before_op = [fault, count = std::make_shared<int>(0)](const Op& op) {
        if (op.id == fault.id && (*count)++ == fault.step) throw Error("planted fault");
      };
    };
    return options;
  }
};

// Ranks differ in which tiles of a replicated weight are their own to update.
const Plan& plan_of(int rank, int stage) {
  static std::map<std::pair<int, int>, Plan> known;
  Plan& plan = known[{rank, stage}];
  if (plan.schedules.empty()) {
    RunConfig config = failing_run(stage);
    const fs::path drive = fresh_folder("drive");
    config.offload.nvme_paths = {drive.string()};
    plan = testing::plan_of_rank(config, rank).plan;
    fs::remove_all(drive);
  }
  return plan;
}

// Of each lane that has such ops, those.
std::vector<std::vector<OpId>> ops_of(const Plan& plan, OpKind kind) {
  const Schedule& train = *plan.schedule("train");
  std::vector<std::vector<OpId>> found;
  for (std::vector<OpId> lane : train.lanes) {
    std::erase_if(lane, [&](OpId op) { return train.ops[op.index()].kind != kind; });
    if (!lane.empty()) found.push_back(std::move(lane));
  }
  return found;
}

class RankThatThrows : public ::testing::TestWithParam<OpKind> {
 protected:
  // Each lane in turn.
  static PlantedFault planted(int rank, int stage, std::uint64_t seed) {
    PhiloxStream random(seed, static_cast<std::uint64_t>(GetParam()));
    const auto lanes = ops_of(plan_of(rank, stage), GetParam());
    const std::vector<OpId>& ops = lanes[seed % lanes.size()];
    return {rank, static_cast<int>(random.next_below(steps)), ops[random.next_below(ops.size())]};
  }
  static void expect_root_cause(const PlantedFault& fault, int stage,
                                const ExecutorOptions& executor) {
    const Op& op = plan_of(fault.rank, stage).schedule("train")->ops[fault.id.index()];
    const std::string error = error_of(failing_run(stage), fault.options(executor));
    EXPECT_THAT(error, StartsWith("rank " + std::to_string(fault.rank) + ": step " +
                                  std::to_string(fault.step + 1) + ": " +
                                  std::string(op_kind_name(op.kind)) + " on lane " +
                                  std::string(lane_name(op.lane))));
    EXPECT_THAT(error, ::testing::EndsWith("planted fault"));
    EXPECT_EQ(error.find("rank ", 1), std::string::npos) << "of one rank alone: " << error;
  }
};

constexpr std::array all_kinds = {
    OpKind::feed,   OpKind::copy, OpKind::read,       OpKind::write,  OpKind::run,
    OpKind::square, OpKind::norm, OpKind::update,     OpKind::gather, OpKind::reduce,
    OpKind::report, OpKind::sum,  OpKind::accumulate,
};
INSTANTIATE_TEST_SUITE_P(InEachOp, RankThatThrows, ::testing::ValuesIn(all_kinds),
                         [](const auto& kind) { return std::string(op_kind_name(kind.param)); });

TEST_P(RankThatThrows, EndsTheRunWithItsRankStepAndOp) {
  std::uint64_t seed = 0;
  for (int stage = 0; stage < 4; ++stage) {
    if (ops_of(plan_of(0, stage), GetParam()).empty()) continue;
    for (int rank = 0; rank < world; ++rank)
      for (int i = 0; i < rounds(2, 1); ++i, ++seed)
        if (!testing::sanitized || (stage + rank) % 4 == 3)
          expect_root_cause(planted(rank, stage, seed), stage, {});
  }
  EXPECT_GT(seed, 0u) << "no plan has this op";
}

TEST_P(RankThatThrows, EndsTheRunWhenRanksExecuteOneOpAfterTheOther) {
  for (const ExecutionMode mode : {ExecutionMode::serial, ExecutionMode::seeded})
    for (int rank = 0; rank < rounds(world, 1); ++rank)
      expect_root_cause(planted(rank, 3, static_cast<std::uint64_t>(100 + rank)), 3, {mode, 5});
}

// A run after all that is as good as one before.
class RanksFailure : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(difference(expected_, train_on_ranks(config_).outcome), "");
  }
  // Without its own folder, which every run has anew.
  static void expect_of_rank(int rank, const std::string& error) {
    EXPECT_THAT(error, StartsWith("rank " + std::to_string(rank) + ": "));
  }
  // Each rank in turn is given another config than the others.
  template <typename Change>
  void expect_clear_for_each_rank(const Change& change, const std::string& reason) {
    for (int rank = 0; rank < world; ++rank) {
      RanksOptions options{{}, sim_engine()};
      options.change = [&](RankSetup& setup) {
        if (setup.rank == rank) change(setup.config);
      };
      const std::string error = error_of(config_, options);
      expect_of_rank(rank, error);
      EXPECT_THAT(error, HasSubstr(reason));
    }
  }

  const RunConfig config_ = failing_run(3);
  const Outcome expected_ = train_on_ranks(config_).outcome;
};

TEST_F(RanksFailure, OfATransferNamesTheRankWhoseItWasAndTheDrivesReason) {
  RunConfig config = config_;
  const fs::path drive = fresh_folder("drive");
  config.offload.nvme_paths = {drive.string()};
  const int stride = rounds(37, 211);
  for (std::uint64_t at = 9; at < 700; at += static_cast<std::uint64_t>(stride)) {
    const std::string error = error_of(config, {{}, [&](const OffloadConfig& offload) {
                                                  return std::make_shared<FaultyEngine>(
                                                      testing::make_sim_engine_for(offload),
                                                      Fault{.at = at, .error_number = EIO});
                                                }});
    EXPECT_THAT(error, ::testing::ContainsRegex("^rank [012]: ")) << at;
    EXPECT_THAT(error, HasSubstr("Input/output error")) << at;
    EXPECT_THAT(error, HasSubstr(drive.string())) << at;
  }
  fs::remove_all(drive);
}

TEST_F(RanksFailure, ToFindItsDataEndsTheRun) {
  expect_clear_for_each_rank(
      [](RunConfig& c) { c.dataset = {c.dataset.front().string() + ".gone"}; }, ".gone");
}

TEST_F(RanksFailure, ToLoadItsWeightsEndsTheRun) {
  const fs::path damaged = fresh_folder("damaged") / "model";
  fs::copy(tiny_files(60).model, damaged);
  fs::resize_file(damaged / "model.safetensors",
                  fs::file_size(damaged / "model.safetensors") - 1000);
  expect_clear_for_each_rank([&](RunConfig& c) { c.model_name_or_path = damaged; },
                             damaged.string());
}

TEST_F(RanksFailure, ToPlanEndsTheRun) {
  RunConfig config = config_;
  config.offload.gpu_limit = 4096;
  EXPECT_THAT(error_of(config, {}), HasSubstr("gpu"));
}

// The first rank alone writes; the others wait for it.
TEST_F(RanksFailure, ToWriteTheExportEndsTheRun) {
  RanksOptions options{{}, sim_engine()};
  options.change = [](RankSetup& setup) {
    if (setup.rank > 0) return;
    setup.trained = [dir = setup.config.output_dir](Session&) {
      fs::create_directory(dir / "export");
    };
  };
  const std::string error = error_of(config_, options);
  expect_of_rank(0, error);
  EXPECT_THAT(error, HasSubstr("export"));
}

// A rank that is done with too few steps, as a fault of ours would make it.
TEST_F(RanksFailure, OfARankThatLeavesTooEarlyEndsTheRun) {
  RanksOptions options{{}, sim_engine()};
  options.change = [](RankSetup& setup) {
    if (setup.rank == 1) setup.trained = [](Session&) { throw Error("had enough"); };
  };
  EXPECT_EQ(error_of(config_, options), "rank 1: had enough");
}

}  // namespace
}  // namespace strata
