// Updates stream: while one tile's state is still on its way from the drive, the tiles before it
// are updated and written back, those after it are read as far as there are slots, and the next
// step's forward runs on what is updated.

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include "strata/runtime/executor.hpp"
#include "support/gate_engine.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"
#include "support/toy_run.hpp"

namespace strata {
namespace {

using testing::GateEngine;
using testing::make_toy_program;
using testing::roomy_limits;
using testing::run_plainly;
using testing::run_planned;
using testing::ToyRunOptions;
using testing::Trajectory;
using Submitted = GateEngine::Submitted;

constexpr int state_slots = 3;

Plan plan_with_state_on_nvme(const Program& program, Tier weights) {
  Policy policy = testing::all_on(Tier::host);
  for (const Role role : {Role::master, Role::moment1, Role::moment2})
    policy.fractions[static_cast<std::size_t>(role)] = {0, 0, 1};
  if (weights == Tier::nvme) policy.fractions[static_cast<std::size_t>(Role::weight)] = {0, 0, 1};
  policy.state_slots = state_slots;
  return make_plan(program, roomy_limits(), policy);
}

class TrainPlan {
 public:
  explicit TrainPlan(const Plan& plan) : schedule_(*plan.schedule("train")) {
    for (const OpId id : lane(Lane::update)) {
      if (op(id).kind == OpKind::update) updates_.push_back(op(id).segment);
    }
  }

  std::size_t num_updates() const { return updates_.size(); }
  SegmentId update(std::size_t number) const { return updates_[number]; }
  // Ops of the lane that serve the updates before the `number`th.
  std::uint64_t ops_before(Lane on, std::size_t number) const {
    const auto end = updates_.begin() + static_cast<std::ptrdiff_t>(number);
    return static_cast<std::uint64_t>(std::ranges::count_if(lane(on), [&](OpId id) {
      return std::find(updates_.begin(), end, op(id).segment) != end;
    }));
  }
  std::uint64_t num_ops(Lane on) const { return lane(on).size(); }
  // Ops of the lane before the first that touches the shard.
  std::uint64_t ops_before(Lane on, ShardId shard) const {
    const auto first = std::ranges::find_if(
        lane(on), [&](OpId id) { return op(id).operands[0].what.shard == shard; });
    return static_cast<std::uint64_t>(first - lane(on).begin());
  }

 private:
  const std::vector<OpId>& lane(Lane on) const {
    return schedule_.lanes[static_cast<std::size_t>(on)];
  }
  const Op& op(OpId id) const { return schedule_.ops[id.index()]; }

  const Schedule& schedule_;
  std::vector<SegmentId> updates_;
};

struct GatedRun {
  Submitted while_closed;
  Trajectory trajectory;
};

// Keeps back the first read of the state of the `number`th update until `wanted` has happened.
GatedRun run_gated(const Program& program, const Plan& plan, std::size_t number,
                   const Submitted& wanted, const ToyRunOptions& options) {
  GateEngine engine(make_sim_engine({}), TrainPlan(plan).ops_before(Lane::state_read, number));
  GatedRun run;
  std::jthread opener([&] { run.while_closed = engine.open_after(wanted); });
  run.trajectory = run_planned(program, plan, &engine, options);
  opener.join();
  return run;
}

ToyRunOptions steps(int count) { return {.steps = count, .evaluate_every = 0}; }

TEST(TileStream, UpdatesAndWritesTheTilesBeforeOneThatIsStillBeingRead) {
  const Program program = make_toy_program({});
  const Plan plan = plan_with_state_on_nvme(program, Tier::host);
  const TrainPlan train(plan);
  for (const std::size_t number : {std::size_t{1}, std::size_t{7}, train.num_updates() - 4}) {
    const Submitted wanted{0, train.ops_before(Lane::state_read, number + state_slots),
                           train.ops_before(Lane::state_write, number)};
    ASSERT_GT(wanted.writes, 0u);
    const GatedRun run = run_gated(program, plan, number, wanted, steps(1));
    EXPECT_EQ(run.while_closed.writes, wanted.writes) << "update " << number;
    EXPECT_EQ(run.while_closed.state_reads, wanted.state_reads)
        << "a slot per tile is full or being filled";
    EXPECT_TRUE(run.trajectory == run_plainly(program, steps(1)));
  }
}

TEST(TileStream, RunsTheNextForwardUpToTheBlockWhoseUpdateIsStillBeingRead) {
  const Program program = make_toy_program({.tied = false});
  const Plan plan = plan_with_state_on_nvme(program, Tier::nvme);
  const TrainPlan train(plan);
  const std::size_t last = train.num_updates() - 1;
  const Segment& update = program.segment(train.update(last));
  const ShardId weight = update.uses.back().shard;
  ASSERT_EQ(program.shard(weight).role, Role::weight);
  const std::uint64_t before = train.ops_before(Lane::read, weight);
  ASSERT_GT(before, 0u);
  const Submitted wanted{train.num_ops(Lane::read) + before, 0, 0};
  const GatedRun run = run_gated(program, plan, last, wanted, steps(2));
  EXPECT_GE(run.while_closed.step_reads, wanted.step_reads);
  EXPECT_TRUE(run.trajectory == run_plainly(program, steps(2)));
}

TEST(ExecutorLanes, AreAnnouncedOnTheirOwnThreadsBeforeTheirFirstOp) {
  const Program program = make_toy_program({});
  const Plan plan = make_plan(program, roomy_limits(), testing::all_on(Tier::host));
  std::mutex mutex;
  std::set<Lane> lanes;
  std::set<std::thread::id> threads;
  ToyRunOptions options = steps(1);
  options.executor.on_lane_start = [&](Lane lane) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(lanes.insert(lane).second) << "once";
    threads.insert(std::this_thread::get_id());
  };
  run_planned(program, plan, nullptr, options);
  EXPECT_FALSE(lanes.contains(Lane::save)) << "nothing is saved";
  EXPECT_EQ(lanes.size(), static_cast<std::size_t>(num_lanes - 1));
  EXPECT_EQ(threads.size(), lanes.size());
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

}  // namespace
}  // namespace strata
