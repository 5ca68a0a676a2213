// A rank that fails ends all, with one root cause that names rank, step and op.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <map>
#include <set>

#include "strata/core/error.hpp"
#include "strata/core/philox.hpp"
#include "support/execution_modes.hpp"
#include "support/policies.hpp"
#include "support/sanitizers.hpp"
#include "support/toy_data.hpp"
#include "support/toy_ranks.hpp"

namespace strata {
namespace {

using testing::all_on;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::RanksRun;
using testing::rounds;
using ::testing::StartsWith;
using testing::ToyRank;
using testing::ToyRanks;
using testing::ToyRunOptions;
using testing::ToyShape;
using testing::ToyStep;

constexpr int num_steps = 3;

ToyShape small_shape(int stage) {
  return {.layers = 1,
          .micro_batches = 2,
          .layer_elements = 5000,
          .embedding_elements = 30000,
          .tokens = 8,
          .world = 3,
          .zero_stage = stage};
}

// Some of everything on every tier.
Policy spread_policy() {
  Policy policy;
  for (TierFractions& f : policy.fractions) f = {0.3, 0.3, 0.4};
  policy.streamed_updates = 0.5;
  return policy;
}

ToyRunOptions train_only() { return {.steps = num_steps, .evaluate_every = 0}; }

class RankFailures : public ::testing::TestWithParam<ExecutionMode> {
 protected:
  ExecutorOptions options(int rank) const { return {GetParam(), static_cast<std::uint64_t>(rank)}; }
};

INSTANTIATE_TEST_SUITE_P(Modes, RankFailures, testing::all_modes(), testing::mode_name);

// The rank's own error is the job's reason, and the others tell it.
void expect_root_cause(const RanksRun& run, std::size_t rank, const std::string& what) {
  EXPECT_EQ(run.failure, "rank " + std::to_string(rank) + ": " + run.errors[rank]) << what;
  for (const std::string& error : run.errors)
    if (&error != &run.errors[rank]) {
      EXPECT_THAT(error, HasSubstr(run.failure)) << what;
    }
}

// Throws from the op's run in that step, of that rank.
struct Injection {
  int rank = 0, step = 0;
  const Op* op = nullptr;

  std::function<void(const Op&)> hook() const {
    return [injected = *this, runs = std::make_shared<std::atomic<int>>(0)](const Op& of) {
      if (&of == injected.op && (*runs)++ == injected.step) throw Error("injected");
    };
  }
};

// One for each kind of op on each lane: any such op, of any rank, in any step.
std::vector<Injection> injections(const ToyRanks& ranks, std::uint64_t seed) {
  std::map<std::pair<OpKind, Lane>, std::vector<Injection>> all;
  for (int rank = 0; rank < ranks.world(); ++rank)
    for (const Op& op : ranks.plan(rank).schedule("train")->ops)
      for (int step = 0; step < num_steps; ++step)
        all[{op.kind, op.lane}].push_back({rank, step, &op});
  PhiloxStream random(seed, 0);
  std::vector<Injection> chosen;
  for (const auto& [where, choices] : all)
    chosen.push_back(choices[random.next_below(choices.size())]);
  return chosen;
}

TEST_P(RankFailures, EndAllRanksFromEveryKindOfOp) {
  std::set<OpKind> kinds;
  for (const int stage : {1, 3}) {
    const ToyRanks ranks(small_shape(stage), spread_policy());
    for (const Injection& injection : injections(ranks, static_cast<std::uint64_t>(stage))) {
      const auto engine = make_sim_engine({});
      const RanksRun run = ranks.train(engine.get(), train_only(), [&](int rank) {
        ExecutorOptions own = options(rank);
        if (rank == injection.rank) own.before_op = injection.hook();
        return own;
      });
      const std::string where = std::string(op_kind_name(injection.op->kind)) + " on lane " +
                                std::string(lane_name(injection.op->lane));
      const auto failed = static_cast<std::size_t>(injection.rank);
      EXPECT_THAT(run.errors[failed],
                  AllOf(StartsWith("step " + std::to_string(injection.step + 1) + ": " + where),
                        HasSubstr("injected")));
      expect_root_cause(run, failed, where);
      kinds.insert(injection.op->kind);
    }
  }
  EXPECT_EQ(kinds.size(), 13u) << "every kind of op occurs";
}

// Transfers that bring the first values to NVMe.
std::uint64_t num_first_writes(const ToyRanks& ranks) {
  std::uint64_t writes = 0;
  for (int rank = 0; rank < ranks.world(); ++rank)
    for (const Shard& shard : ranks.program(rank).shards)
      if (testing::is_toy_state(shard.role))
        for (const Region& home : ranks.plan(rank).homes[shard.id.index()])
          writes += home.tier == Tier::nvme;
  return writes;
}

TEST_P(RankFailures, EndAllRanksWhenADriveFailsOneOfThem) {
  const ToyRanks ranks(small_shape(3), all_on(Tier::nvme));
  for (std::uint64_t at = 60; at < 360; at += static_cast<std::uint64_t>(rounds(60, 140))) {
    SimOptions disk;
    disk.faults = {{num_first_writes(ranks) + at, EIO}};
    disk.latency_us_max = 10;
    const auto engine = make_sim_engine(disk);
    const RanksRun run =
        ranks.train(engine.get(), train_only(), [&](int rank) { return options(rank); });
    ASSERT_THAT(run.failure, AllOf(StartsWith("rank "), HasSubstr("Input/output error")));
    expect_root_cause(run, static_cast<std::size_t>(run.failure[5] - '0'),
                      "at " + std::to_string(at));
  }
}

// Rank 1 comes to its first collective only when rank 0 is gone.
TEST_P(RankFailures, EndAllRanksWhenOneEndsBeforeItsStepsAreDone) {
  if (GetParam() == ExecutionMode::serial) GTEST_SKIP() << "submits whole steps";
  const ToyRanks ranks(small_shape(3), all_on(Tier::host));
  std::promise<void> leaves;
  const std::shared_future<void> left = leaves.get_future().share();
  const auto rank_options = [&](int rank) {
    ExecutorOptions own = options(rank);
    if (rank == 1)
      own.before_op = [left](const Op& op) {
        if (op.lane == Lane::comm) left.wait();
      };
    return own;
  };
  const RanksRun run = ranks.run(nullptr, rank_options, [&](ToyRank& toy, int rank, RanksRun&) {
    if (rank != 0) return (void)toy.train(train_only());
    ToyStep step;
    step.fill(ranks.program(0), 0, train_only());
    toy.executor().submit("train", step.args());
    toy.end();
    leaves.set_value();
  });
  EXPECT_EQ(run.failure, "rank 0: the rank ended before its steps were done");
  for (const std::string& error : run.errors) EXPECT_THAT(error, HasSubstr(run.failure));
}

TEST_P(RankFailures, AreNoneWhenARankEndsAfterItsSteps) {
  const ToyRanks ranks(small_shape(2), all_on(Tier::host));
  const RanksRun run = ranks.run(
      nullptr, [&](int rank) { return options(rank); },
      [&](ToyRank& toy, int, RanksRun&) {
        toy.train(train_only());
        toy.end();
      });
  EXPECT_EQ(run.failure, "");
  for (const std::string& error : run.errors) EXPECT_EQ(error, "");
}

std::string refusal(const ToyRanks& ranks, Communicator* comm) {
  try {
    ToyRank(ranks.program(0), ranks.plan(0), nullptr, comm, {});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(RankLink, IsNeededByAPlanForSeveralRanks) {
  const ToyRanks ranks(small_shape(3), all_on(Tier::host));
  EXPECT_THAT(refusal(ranks, nullptr), HasSubstr("rank 0 of 3"));
}

TEST(RankLink, IsThatOfThePlansRank) {
  const ToyRanks ranks(small_shape(3), all_on(Tier::host));
  const std::vector<RankLinks> three = make_local_ranks(3), two = make_local_ranks(2);
  EXPECT_THAT(refusal(ranks, three[1].data.get()), HasSubstr("rank 1 of 3"));
  EXPECT_THAT(refusal(ranks, two[0].data.get()), HasSubstr("rank 0 of 2"));
}

}  // namespace
}  // namespace strata
