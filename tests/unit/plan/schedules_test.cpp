// Schedules: groups of micro-batches, orders of updates and the engines that make them. What each
// promises of a plan, and that the checker tells when it is broken.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "strata/core/error.hpp"
#include "support/edge_closure.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"
#include "support/violations.hpp"

namespace strata {
namespace {

using testing::all_on;
using testing::drop_edges;
using testing::DroppedEdges;
using ::testing::HasSubstr;
using testing::joined;
using testing::make_toy_program;
using testing::random_schedule;
using testing::roomy_limits;
using testing::ToyShape;
using testing::ToyUpdate;

// One to six micro-batches, in groups of each size that divides them.
ToyShape random_shape(std::uint64_t seed) {
  PhiloxStream random(seed, 79);
  const int group = 1 + static_cast<int>(random.next_below(3));
  return {.layers = 1 + static_cast<int>(random.next_below(4)),
          .micro_batches = group * (1 + static_cast<int>(random.next_below(2))),
          .group = group,
          .tied = random.next_below(3) == 0,
          .update = static_cast<ToyUpdate>(random.next_below(2))};
}

TEST(Schedules, VerifyForRandomProgramsPlacementsSlotsOrdersAndEngines) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Program program = make_toy_program(random_shape(seed));
    const Plan plan = make_plan(program, roomy_limits(), random_schedule(seed));
    ASSERT_EQ(joined(verify(program, plan)), "") << "seed " << seed;
  }
}

const SlotPool* pool(const Plan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.pools, name, &SlotPool::name);
  return found == plan.pools.end() ? nullptr : &*found;
}

Policy policy_of(Tier tier, UpdateOrder order, double streamed = 0) {
  Policy policy = all_on(tier);
  policy.update_order = order;
  policy.streamed_updates = streamed;
  return policy;
}

std::vector<const Op*> updates(const Plan& plan) {
  std::vector<const Op*> found;
  for (const Op& op : plan.schedules[0].ops)
    if (op.kind == OpKind::update) found.push_back(&op);
  return found;
}

// The operands that lie in slots.
std::vector<std::pair<Operand*, const SlotPool*>> slot_operands(Plan& plan) {
  std::vector<std::pair<Operand*, const SlotPool*>> found;
  for (Op& op : plan.schedules[0].ops)
    for (Operand& operand : op.operands)
      for (const SlotPool& pool : plan.pools)
        if (pool.num_slots > 1 &&
            operand.region.overlaps({pool.tier, 0, pool.offset,
                                     pool.slot_bytes * static_cast<std::uint64_t>(pool.num_slots)}))
          found.emplace_back(&operand, &pool);
  return found;
}

void move_to_next_slot(Operand& operand, const SlotPool& pool) {
  const std::uint64_t all = pool.slot_bytes * static_cast<std::uint64_t>(pool.num_slots);
  operand.region.offset =
      pool.offset + (operand.region.offset - pool.offset + pool.slot_bytes) % all;
}

TEST(Schedules, NeverVerifyWithAnOperandInAnotherSlot) {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Program program = make_toy_program(random_shape(seed));
    Plan plan = make_plan(program, roomy_limits(), random_schedule(seed));
    const auto operands = slot_operands(plan);
    PhiloxStream random(seed, 80);
    for (int i = 0; i < 5 && !operands.empty(); ++i, ++moved) {
      const auto& [operand, pool] = operands[random.next_below(operands.size())];
      const Operand right = *operand;
      move_to_next_slot(*operand, *pool);
      derive_edges(plan.schedules[0]);
      EXPECT_NE(joined(verify(program, plan)), "") << "seed " << seed << ", " << pool->name;
      *operand = right;
    }
    derive_edges(plan.schedules[0]);
    ASSERT_EQ(joined(verify(program, plan)), "") << "seed " << seed;
  }
  EXPECT_GT(moved, 150);
}

TEST(Schedules, NeverFitABudgetThatIsOneByteTooSmall) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Program program = make_toy_program(random_shape(seed));
    Plan plan = make_plan(program, roomy_limits(1), random_schedule(seed));
    plan.limits = {plan.tier_bytes[0], plan.tier_bytes[1], {plan.tier_bytes[2]}, {}};
    EXPECT_NO_THROW(make_plan(program, plan.limits, plan.policy));
    for (std::uint64_t* limit :
         {&plan.limits.device_bytes, &plan.limits.host_bytes, &plan.limits.drive_bytes[0]}) {
      if (*limit == 0) continue;
      --*limit;
      EXPECT_THAT(joined(verify(program, plan)), HasSubstr("exceeds its limit"));
      EXPECT_THROW(make_plan(program, plan.limits, plan.policy), OutOfMemory);
      ++*limit;
    }
  }
}

// --- Groups of micro-batches

// Bytes of weights that pass to the device for forward and backward.
std::uint64_t fetched_weight_bytes(const Program& program, const Plan& plan) {
  std::uint64_t bytes = 0;
  for (const Op& op : plan.schedules[0].ops)
    if (op.lane == Lane::h2d && op.kind == OpKind::copy &&
        program.shard(op.operands[0].what.shard).role == Role::weight)
      bytes += op.operands[0].region.bytes;
  return bytes;
}

TEST(Groups, FetchWeightsOncePerPassAndGroup) {
  const auto bytes = [](int micro_batches, int group) {
    const Program program = make_toy_program(
        {.layers = 6, .micro_batches = micro_batches, .group = group, .tied = false});
    Policy policy = all_on(Tier::host);
    policy.weight_slots = 1;
    return fetched_weight_bytes(program, make_plan(program, roomy_limits(), policy));
  };
  const std::uint64_t once = bytes(1, 1), twice = bytes(4, 2);
  EXPECT_EQ(bytes(4, 4), once);
  EXPECT_GT(twice, once + once / 2) << "all but what the slots still hold from the last group";
  EXPECT_EQ(bytes(4, 1) - once, 3 * (twice - once));
}

TEST(Groups, HoldEveryGradientOfABoundaryAndTheNextOne) {
  for (const int group : {1, 2, 4}) {
    const Program program = make_toy_program({.micro_batches = 4, .group = group, .tied = false});
    const Plan plan = make_plan(program, roomy_limits(), all_on(Tier::host));
    EXPECT_EQ(pool(plan, "activation gradients")->num_slots, group + 1);
    EXPECT_EQ(pool(plan, "inputs")->num_slots, group + 1);
  }
}

TEST(Groups, FeedEachInputOnce) {
  const Program program = make_toy_program({.micro_batches = 4, .group = 4, .tied = false});
  const Plan plan = make_plan(program, roomy_limits(), all_on(Tier::host));
  EXPECT_EQ(std::ranges::count(plan.schedules[0].ops, OpKind::feed, &Op::kind), 4);
}

TEST(Groups, GiveEachOfTheirBoundariesAHome) {
  const Program program = make_toy_program({.micro_batches = 2, .group = 2, .tied = false});
  const Plan plan = make_plan(program, roomy_limits(), all_on(Tier::nvme));
  std::vector<Region> homes;
  for (const Shard& shard : program.shards)
    if (shard.role == Role::activation)
      for (const Region& home : plan.homes[shard.id.index()]) homes.push_back(home);
  EXPECT_EQ(homes.size(), 2u * program.blocks.size() - 2) << "all live at once, the last too";
  for (std::size_t i = 0; i < homes.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(homes[i].overlaps(homes[j]));
}

TEST(Groups, WriteASumToNvmeOnceWhereStagingHoldsItsTiles) {
  const auto written = [](int group, int staging_slots) {
    const Program program = make_toy_program({.micro_batches = 4, .group = group, .tied = false});
    Policy policy = all_on(Tier::host);
    policy.fractions[static_cast<std::size_t>(Role::gradient)] = {0, 0, 1};
    policy.staging_slots = staging_slots;
    const Plan plan = make_plan(program, roomy_limits(), policy);
    EXPECT_EQ(joined(verify(program, plan)), "");
    return nvme_traffic(plan, "train").written_bytes();
  };
  constexpr int tiles = 8;  // of the embedding, the largest block
  const std::uint64_t each_time = written(1, tiles);
  EXPECT_EQ(written(4, tiles), each_time / 4);
  EXPECT_EQ(written(2, tiles), each_time / 2);
  EXPECT_EQ(written(4, 1), each_time - 3 * 4096) << "only the head has no more tiles than staging";
}

// --- Orders of updates

std::vector<int> blocks_updated(const Program& program, const Plan& plan) {
  std::vector<int> blocks;
  for (const Op* op : updates(plan)) {
    const int block = program.segment(op->segment).block;
    if (blocks.empty() || blocks.back() != block) blocks.push_back(block);
  }
  return blocks;
}

TEST(UpdateOrders, AreThatOfNextUseOrThatOfArrival) {
  for (const bool tied : {false, true}) {
    const Program program = make_toy_program({.layers = 3, .tied = tied});
    const auto order = [&](UpdateOrder asked) {
      return blocks_updated(program,
                            make_plan(program, roomy_limits(), policy_of(Tier::host, asked)));
    };
    EXPECT_THAT(order(UpdateOrder::deferred), ::testing::ElementsAre(0, 1, 2, 3, 4));
    EXPECT_THAT(order(UpdateOrder::after_backward), ::testing::ElementsAre(4, 3, 2, 1, 0));
    EXPECT_THAT(order(UpdateOrder::during_backward), ::testing::ElementsAre(4, 3, 2, 1, 0));
  }
}

TEST(UpdateOrders, ReportAStepWhenItsNormIsKnownUnlessTheNextOneMustWait) {
  const Program program = make_toy_program({});
  const auto follows_updates = [&](UpdateOrder order) {
    const Plan plan = make_plan(program, roomy_limits(), policy_of(Tier::nvme, order));
    const auto& ops = plan.schedules[0].ops;
    const auto report = std::ranges::find(ops, OpKind::report, &Op::kind);
    return report->id > updates(plan).back()->id;
  };
  EXPECT_FALSE(follows_updates(UpdateOrder::deferred));
  EXPECT_TRUE(follows_updates(UpdateOrder::after_backward));
}

// The plain order with state in one tier, and what breaks it.
class Barrier : public ::testing::TestWithParam<Tier> {
 protected:
  const std::vector<Op>& ops() const { return plan_.schedules[0].ops; }

  Program program_ = make_toy_program({.micro_batches = 2});
  Plan plan_ =
      make_plan(program_, roomy_limits(), policy_of(GetParam(), UpdateOrder::after_backward, 0.5));
};

INSTANTIATE_TEST_SUITE_P(Tiers, Barrier, ::testing::Values(Tier::device, Tier::host, Tier::nvme),
                         [](const auto& tier) { return std::string(tier_name(tier.param)); });

TEST_P(Barrier, HoldsEveryLaneUntilTheStepBeforeHasEnded) {
  const Schedule& schedule = plan_.schedules[0];
  EXPECT_EQ(joined(verify(program_, plan_)), "");
  EXPECT_EQ(schedule.end, StepEnd::barrier);
  EXPECT_EQ(ops().back().kind, OpKind::report);
  EXPECT_EQ(plan_.schedule("eval")->end, StepEnd::open);
}

TEST_P(Barrier, IsMissedWhereAnEdgeOfItIsDropped) {
  const OpId last = ops().back().id;
  const auto waits_for_last = [&](const Op& op) {
    return std::ranges::any_of(op.after,
                               [&](const Edge& e) { return e.op == last && e.steps_back == 1; });
  };
  const DroppedEdges dropped = drop_edges(
      program_, plan_, [&](const Op& op) { return op.id == last || waits_for_last(op); });
  EXPECT_GE(dropped.needed, 2);
  EXPECT_THAT(dropped.missed, ::testing::IsEmpty());
}

TEST_P(Barrier, IsNotInADeferredPlan) {
  Plan plan = make_plan(program_, roomy_limits(), policy_of(GetParam(), UpdateOrder::deferred));
  EXPECT_EQ(joined(verify(program_, plan)), "");
  plan.policy.update_order = UpdateOrder::after_backward;
  EXPECT_THAT(joined(verify(program_, plan)), HasSubstr("updates were to come after backward"));
}

TEST(UpdateOrders, KeepTheNumberOfEdgesInProportionToTheOps) {
  const Program program = make_toy_program({.layers = 24, .micro_batches = 2});
  const auto num_edges = [&](UpdateOrder order) {
    const Plan plan = make_plan(program, roomy_limits(), policy_of(Tier::nvme, order));
    std::size_t edges = 0;
    for (const Op& op : plan.schedules[0].ops) edges += op.after.size();
    return edges;
  };
  const std::size_t deferred = num_edges(UpdateOrder::deferred);
  EXPECT_LT(num_edges(UpdateOrder::after_backward), 2 * deferred);
}

// --- Updates that pass through the device

double fraction_on_device(const Program& program, const Plan& plan) {
  double on_device = 0, all = 0;
  for (const Op* op : updates(plan))
    for (const Operand& operand : op->operands) {
      if (operand.access != Access::update) continue;
      const auto bytes =
          static_cast<double>(program.tile_bytes(operand.what.shard, operand.what.tile));
      all += bytes;
      if (op->lane == Lane::compute) on_device += bytes;
    }
  return on_device / all;
}

TEST(StreamedUpdates, AreTheFractionAskedForToWithinOneTile) {
  const Program program = make_toy_program({.layers = 20});
  for (const UpdateOrder order : {UpdateOrder::deferred, UpdateOrder::after_backward})
    for (const double asked : {0.0, 0.25, 0.5, 1.0}) {
      const Plan plan = make_plan(program, roomy_limits(), policy_of(Tier::nvme, order, asked));
      EXPECT_NEAR(fraction_on_device(program, plan), asked, 1.0 / 40);
    }
}

TEST(StreamedUpdates, AreSpreadOverTheSchedule) {
  const Program program = make_toy_program({.layers = 12});
  const Plan plan =
      make_plan(program, roomy_limits(), policy_of(Tier::host, UpdateOrder::deferred, 0.5));
  std::map<int, std::array<int, 2>> by_block;  // on the host, on the device
  for (const Op* op : updates(plan))
    ++by_block[program.segment(op->segment).block][op->lane == Lane::compute ? 1 : 0];
  for (const auto& [block, count] : by_block)
    if (count[0] + count[1] >= 3) {
      EXPECT_GT(count[0], 0) << block;
      EXPECT_GT(count[1], 0) << block;
    }
}

TEST(StreamedUpdates, AreAFractionOfWhatDoesNotLiveOnTheDevice) {
  const Program program = make_toy_program({.layers = 20});
  Policy policy = policy_of(Tier::host, UpdateOrder::deferred, 0.5);
  for (const Role role : {Role::master, Role::moment1, Role::moment2})
    policy.fractions[static_cast<std::size_t>(role)] = {0.5, 0.5, 0};
  const Plan plan = make_plan(program, roomy_limits(), policy);
  EXPECT_NEAR(fraction_on_device(program, plan), 0.75, 1.0 / 20);
}

TEST(StreamedUpdates, PassThroughSlotsOfTheirOwn) {
  const Program program = make_toy_program({});
  const auto planned = [&](double streamed) {
    return make_plan(program, roomy_limits(),
                     policy_of(Tier::nvme, UpdateOrder::deferred, streamed));
  };
  const Plan streamed = planned(1), plain = planned(0);
  for (const char* role : {"master", "moment1", "moment2", "weight", "gradient"}) {
    const std::string name = std::string(role) + " tiles on the device";
    ASSERT_NE(pool(streamed, name), nullptr) << name;
    EXPECT_EQ(pool(streamed, name)->num_slots, streamed.policy.state_slots);
    EXPECT_EQ(pool(streamed, name)->tier, Tier::device);
    EXPECT_EQ(pool(plain, name), nullptr) << name;
  }
}

TEST(StreamedUpdates, ReadAndWriteTheirStateAsOftenAsTheHostDoes) {
  const Program program = make_toy_program({});
  const auto traffic = [&](double streamed) {
    const Plan plan =
        make_plan(program, roomy_limits(), policy_of(Tier::nvme, UpdateOrder::deferred, streamed));
    const NvmeTraffic moved = nvme_traffic(plan, "train");
    return std::pair(moved.read_bytes(), moved.written_bytes());
  };
  EXPECT_EQ(traffic(1), traffic(0));
}

TEST(StreamedUpdates, AreRefusedUnlessAFraction) {
  for (const double asked : {-0.1, 1.1})
    EXPECT_THROW(make_plan(make_toy_program({}), roomy_limits(),
                           policy_of(Tier::host, UpdateOrder::deferred, asked)),
                 ConfigError);
}

// Updates of all tiers' state on the device: what may go wrong on the way.
class StreamedUpdatesVerify : public ::testing::TestWithParam<Tier> {
 protected:
  std::vector<Op>& ops() { return plan_.schedules[0].ops; }
  Op& last_update() {
    return *std::find_if(ops().rbegin(), ops().rend(),
                         [](const Op& op) { return op.kind == OpKind::update; });
  }
  Operand& operand(Op& op, Role role) {
    return *std::ranges::find_if(op.operands, [&](const Operand& o) {
      return o.what.shard.valid() && program_.shard(o.what.shard).role == role;
    });
  }
  void expect_found() { EXPECT_NE(joined(verify(program_, plan_)), ""); }

  Program program_ = make_toy_program({.update = ToyUpdate::updates_weight});
  Plan plan_ = make_plan(program_, roomy_limits(), policy_of(GetParam(), UpdateOrder::deferred, 1));
};

INSTANTIATE_TEST_SUITE_P(Tiers, StreamedUpdatesVerify, ::testing::Values(Tier::host, Tier::nvme),
                         [](const auto& tier) { return std::string(tier_name(tier.param)); });

TEST_P(StreamedUpdatesVerify, FindASlotThatIsSwapped) {
  for (const Role role : {Role::master, Role::moment1, Role::weight}) {
    Plan right = plan_;
    Operand& state = operand(last_update(), role);
    const SlotPool& slots = *pool(plan_, std::string(role_name(role)) + " tiles on the device");
    state.region.offset =
        state.region.offset == slots.offset ? slots.offset + slots.slot_bytes : slots.offset;
    derive_edges(plan_.schedules[0]);
    expect_found();
    plan_ = right;
  }
}

TEST_P(StreamedUpdatesVerify, FindAnUpdateOfWhatIsStillInHostMemory) {
  last_update().lane = Lane::update;
  derive_edges(plan_.schedules[0]);
  expect_found();
}

TEST_P(StreamedUpdatesVerify, FindStateThatDoesNotComeOrDoesNotGoHome) {
  const Plan right = plan_;
  for (const Lane lane : {Lane::state_h2d, Lane::state_d2h}) {
    plan_ = right;
    const auto last =
        std::find_if(ops().rbegin(), ops().rend(), [&](const Op& op) { return op.lane == lane; });
    ASSERT_NE(last, ops().rend());
    ops().erase(std::next(last).base());
    derive_edges(plan_.schedules[0]);
    expect_found();
  }
}

TEST_P(StreamedUpdatesVerify, FindASlotTakenAgainTooEarly) {
  const DroppedEdges dropped =
      drop_edges(program_, plan_, [](const Op& op) { return op.lane == Lane::state_h2d; });
  EXPECT_GT(dropped.needed, 10);
  EXPECT_THAT(dropped.missed, ::testing::IsEmpty());
}

TEST_P(StreamedUpdatesVerify, FindABudgetThatIsShrunk) {
  plan_.limits.device_bytes = plan_.tier_bytes[0] - 1;
  EXPECT_THAT(joined(verify(program_, plan_)), HasSubstr("tier gpu exceeds its limit"));
  EXPECT_THROW(make_plan(program_, plan_.limits, plan_.policy), OutOfMemory);
}

}  // namespace
}  // namespace strata
