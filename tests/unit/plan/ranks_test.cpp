// Plans for one of several ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "strata/core/error.hpp"
#include "strata/plan/plan.hpp"
#include "support/edge_closure.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"
#include "support/violations.hpp"

namespace strata {
namespace {

using testing::all_on;
using testing::drop_edges;
using testing::DroppedEdges;
using testing::joined;
using testing::make_toy_program;
using testing::random_policy;
using testing::roomy_limits;
using testing::ToyShape;
using testing::ToyUpdate;

constexpr std::array worlds = {1, 2, 3, 8};
constexpr std::array stages = {0, 1, 2, 3};

ToyShape random_ranks_shape(std::uint64_t seed, int world, int stage) {
  const int micro_batches = 1 + static_cast<int>(seed % 3);
  return {.layers = 1 + static_cast<int>(seed % 3),
          .micro_batches = micro_batches,
          .group = seed % 4 < 2 ? micro_batches : 1,
          .layer_elements = 10000 + static_cast<std::int64_t>(seed % 7) * 5000,
          .embedding_elements = 70000,
          .tied = seed % 2 == 0,
          .update = seed % 3 == 0 ? ToyUpdate::updates_weight : ToyUpdate::produces_weight,
          .world = world,
          .rank = static_cast<int>(seed) % world,
          .zero_stage = stage};
}

Policy random_policy_in_any_order(std::uint64_t seed) {
  constexpr std::array orders = {UpdateOrder::deferred, UpdateOrder::after_backward,
                                 UpdateOrder::during_backward};
  Policy policy = random_policy(seed);
  policy.update_order = orders[seed % orders.size()];
  return policy;
}

TEST(PlanOfRanks, VerifiesForRandomProgramsWorldsStagesAndPlacements) {
  for (const int world : worlds)
    for (const int stage : stages)
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        const Program program = make_toy_program(random_ranks_shape(seed, world, stage));
        const Policy policy =
            random_policy_in_any_order(seed + 100 * static_cast<std::uint64_t>(stage + world));
        const Plan plan = make_plan(program, roomy_limits(), policy);
        ASSERT_EQ(joined(verify(program, plan)), "")
            << "world " << world << " stage " << stage << " seed " << seed;
      }
}

TEST(PlanOfRanks, VerifiesForEachPlacementInOneTier) {
  for (const Tier tier : {Tier::device, Tier::host, Tier::nvme})
    for (const int stage : stages) {
      const Program program = make_toy_program(
          {.layers = 2, .micro_batches = 2, .world = 5, .rank = 4, .zero_stage = stage});
      const Plan plan = make_plan(program, roomy_limits(), all_on(tier));
      EXPECT_EQ(joined(verify(program, plan)), "") << tier_name(tier) << " stage " << stage;
    }
}

TEST(PlanOfRanks, OfOneRankIsTheSameForEveryStage) {
  const Program plain = make_toy_program({}), replicated = make_toy_program({.zero_stage = 0});
  const Policy policy = random_policy(3);
  EXPECT_EQ(plan_hash(plain, make_plan(plain, roomy_limits(), policy)),
            plan_hash(replicated, make_plan(replicated, roomy_limits(), policy)));
}

// What all ranks must agree on, op by op of the comm lane.
using Collective = std::tuple<OpKind, std::int32_t, std::uint64_t, std::uint64_t>;
std::vector<Collective> collectives(const Plan& plan) {
  std::vector<Collective> found;
  for (const Op& op : plan.schedules[0].ops)
    if (op.kind == OpKind::gather || op.kind == OpKind::reduce)
      found.emplace_back(op.kind, op.operands[0].what.shard.value, op.operands[0].region.bytes,
                         op.operands[1].region.bytes);
  return found;
}

TEST(PlanOfRanks, IssuesTheSameCollectivesOnEveryRank) {
  for (const int stage : stages) {
    const auto of_rank = [&](int rank) {
      const Program program =
          make_toy_program({.micro_batches = 2, .world = 3, .rank = rank, .zero_stage = stage});
      return collectives(make_plan(program, roomy_limits(), random_policy(11)));
    };
    const std::vector<Collective> first = of_rank(0);
    EXPECT_FALSE(first.empty());
    EXPECT_EQ(of_rank(1), first);
    EXPECT_EQ(of_rank(2), first);
  }
}

std::uint64_t rank_home_bytes(const Plan& plan, Role role) {
  const auto usage =
      std::ranges::find_if(plan.usage, [&](const Usage& u) { return u.is_home && u.role == role; });
  return usage->bytes[0] + usage->bytes[1] + usage->bytes[2];
}

// A quarter of a million elements a block, so that a slice's padding is small.
ToyShape large_shape(int world, int stage) {
  return {.layers = 3,
          .layer_elements = 1 << 18,
          .embedding_elements = 1 << 18,
          .tile_elements = 1 << 14,
          .tied = false,
          .world = world,
          .zero_stage = stage};
}

TEST(PlanOfRanks, HoldsAnNthOfEachRoleFromTheStageOnThatSlicesIt) {
  constexpr std::array<std::pair<Role, int>, 5> first_stage{{{Role::master, 1},
                                                             {Role::moment1, 1},
                                                             {Role::moment2, 1},
                                                             {Role::gradient, 2},
                                                             {Role::weight, 3}}};
  const Program one = make_toy_program(large_shape(1, 3));
  const Plan whole = make_plan(one, roomy_limits(), all_on(Tier::host));
  for (const int world : {2, 8})
    for (const int stage : stages) {
      const Program program = make_toy_program(large_shape(world, stage));
      const Plan plan = make_plan(program, roomy_limits(), all_on(Tier::host));
      for (const auto& [role, from] : first_stage) {
        const auto sharers = static_cast<std::uint64_t>(stage >= from ? world : 1);
        const std::uint64_t padding = program.blocks.size() * 4096 * 4;
        EXPECT_GE(rank_home_bytes(plan, role) + padding, rank_home_bytes(whole, role) / sharers);
        EXPECT_LE(rank_home_bytes(plan, role), rank_home_bytes(whole, role) / sharers +
                                                   padding * static_cast<std::uint64_t>(world))
            << role_name(role) << " world " << world << " stage " << stage;
      }
    }
}

std::uint64_t communicated(const Plan& plan, Tier tier) {
  std::uint64_t bytes = 0;
  for (const Op& op : plan.schedules[0].ops)
    if (op.lane == Lane::comm && op.operands[0].region.tier == tier) bytes += collective_bytes(op);
  return bytes;
}

// The part of a block's bytes that come from, or go to, other ranks.
std::uint64_t others_share(const Program& program, Role role) {
  std::int64_t elements = 0;
  for (const Shard& shard : program.shards)
    if (shard.role == role) elements += program.whole_elements(shard.id);
  return static_cast<std::uint64_t>(elements * 4 / program.world * (program.world - 1));
}

TEST(PlanOfRanks, CommunicatesWhatItsStageCosts) {
  Policy policy = all_on(Tier::host);
  policy.weight_slots = 1;
  for (const int world : {2, 4}) {
    const auto bytes = [&](int stage) {
      const Program program = make_toy_program(large_shape(world, stage));
      return communicated(make_plan(program, roomy_limits(), policy), Tier::device);
    };
    const Program program = make_toy_program(large_shape(world, 3));
    const std::uint64_t once = others_share(program, Role::weight);
    const auto block = [&](int b) {  // of f32
      return static_cast<std::uint64_t>(program.whole_elements(program.find(Role::weight, b)) * 4 /
                                        world * (world - 1));
    };
    const int head = static_cast<int>(program.blocks.size()) - 1;
    EXPECT_EQ(bytes(0), 2 * once) << "reduced and gathered";
    EXPECT_EQ(bytes(1), 3 * once) << "and the new weight gathered";
    EXPECT_EQ(bytes(2), 2 * once) << "reduced, and the new weight gathered";
    // Layers are gathered for forward and for backward. The head needs its weights in one segment,
    // the embedding's backward none, and the last layer's are still there when backward begins.
    EXPECT_EQ(bytes(3), 3 * once - block(0) - block(head) - block(head - 1));
  }
}

TEST(PlanOfRanks, GathersWeightsForEachMicroBatch) {
  const auto gathers = [](int micro_batches) {
    ToyShape shape = large_shape(4, 3);
    shape.micro_batches = micro_batches;
    const Plan plan = make_plan(make_toy_program(shape), roomy_limits(), all_on(Tier::device));
    return std::ranges::count_if(plan.schedules[0].ops, [](const Op& op) {
      return op.kind == OpKind::gather && op.operands[0].region.tier == Tier::device;
    });
  };
  EXPECT_GT(gathers(3), 2 * gathers(1));
}

TEST(PlanOfRanks, GathersASliceThatLivesOnTheDeviceFromItsHome) {
  const Program program = make_toy_program(large_shape(4, 3));
  const Plan plan = make_plan(program, roomy_limits(), all_on(Tier::device));
  for (const Op& op : plan.schedules[0].ops) {
    if (op.kind != OpKind::gather || !op.operands[0].what.shard.valid()) continue;
    const Region& home = plan.homes[op.operands[0].what.shard.index()].front();
    EXPECT_EQ(op.operands[0].region.offset, home.offset);
  }
}

// In the order of the comm lane, where each collective waits for those before it.
TEST(PlanOfRanks, GathersTheNextBlocksWeightsBeforeItSumsTheContributionsOfThisOne) {
  const Program program = make_toy_program({.layers = 8, .world = 4});
  const Plan plan = make_plan(program, roomy_limits(), all_on(Tier::host));
  const Schedule& train = plan.schedules[0];
  std::vector<int> gathered;  // by backward
  int sums = 0;
  for (const OpId id : train.lanes[static_cast<std::size_t>(Lane::comm)]) {
    const Op& op = train.ops[id.index()];
    if (program.segment(op.segment).kind != SegmentKind::backward) continue;
    const int block = program.segment(op.segment).block;
    if (op.kind == OpKind::gather) gathered.push_back(block);
    if (op.kind != OpKind::reduce || block > 6 || block < 2) continue;
    EXPECT_THAT(gathered, ::testing::Contains(block - 1)) << "block " << block;
    ++sums;
  }
  EXPECT_EQ(sums, 5);
}

TEST(PlanOfRanks, SharesWeightsUpdatedDuringBackwardAfterAllContributionsAreSummed) {
  const Program program = make_toy_program({.world = 4, .zero_stage = 2});
  Policy policy = all_on(Tier::host);
  policy.update_order = UpdateOrder::during_backward;
  const Plan plan = make_plan(program, roomy_limits(), policy);
  const auto& ops = plan.schedules[0].ops;
  const auto is_shared_weight = [](const Op& op) {
    return op.kind == OpKind::gather && op.operands[0].what.tile == own_slice;
  };
  const auto first = std::ranges::find_if(ops, is_shared_weight);
  EXPECT_EQ(std::count_if(first, ops.end(), is_shared_weight), std::ssize(program.blocks));
  EXPECT_EQ(std::count_if(first, ops.end(), [](const Op& op) { return op.kind == OpKind::reduce; }),
            0);
}

TEST(PlanOfRanks, TellsThatItsTableIsOfOneRank) {
  const Program program = make_toy_program({.world = 4, .zero_stage = 2}),
                one = make_toy_program({});
  const Plan plan = make_plan(program, roomy_limits(), all_on(Tier::host));
  EXPECT_THAT(format_plan(program, plan), ::testing::HasSubstr("per rank of 4 (ZeRO stage 2)"));
  EXPECT_THAT(format_plan(one, make_plan(one, roomy_limits(), all_on(Tier::host))),
              ::testing::Not(::testing::HasSubstr("per rank")));
}

// --- What the checker finds in them.

class VerifierOfRanks : public ::testing::TestWithParam<int> {
 protected:
  Program program_ = make_toy_program(
      {.layers = 2, .micro_batches = 2, .world = 3, .rank = 1, .zero_stage = GetParam()});
  Plan plan_ = make_plan(program_, roomy_limits(), random_policy(4));

  std::vector<std::size_t> ops_of(OpKind kind) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < plan_.schedules[0].ops.size(); ++i)
      if (plan_.schedules[0].ops[i].kind == kind) found.push_back(i);
    return found;
  }
  template <typename Change>
  void expect_found(Change change, const std::string& what) {
    Plan plan = plan_;
    change(plan.schedules[0].ops);
    derive_edges(plan.schedules[0]);
    EXPECT_FALSE(verify(program_, plan).empty()) << what;
  }
};

TEST_P(VerifierOfRanks, FindsEachCollectiveLeftOut) {
  for (const OpKind kind : {OpKind::gather, OpKind::reduce, OpKind::sum})
    for (const std::size_t at : ops_of(kind))
      expect_found([&](auto& ops) { ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(at)); },
                   std::string(op_kind_name(kind)) + " " + std::to_string(at));
}

TEST_P(VerifierOfRanks, FindsEachCollectiveMadeTwice) {
  for (const std::size_t at : ops_of(OpKind::reduce))
    expect_found(
        [&](auto& ops) {
          const Op again = ops[at];
          ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(at), again);
        },
        std::to_string(at));
}

TEST_P(VerifierOfRanks, FindsAWholeThatIsTooShort) {
  for (const OpKind kind : {OpKind::gather, OpKind::reduce})
    for (const std::size_t at : ops_of(kind))
      expect_found(
          [&](auto& ops) { ops[at].operands[kind == OpKind::gather ? 1 : 0].region.bytes -= 8; },
          std::to_string(at));
}

TEST_P(VerifierOfRanks, FindsASliceInAnotherRanksPart) {
  for (const std::size_t at : ops_of(OpKind::gather))
    expect_found(
        [&](auto& ops) {
          Operand& slice = ops[at].operands[0];
          slice.region.offset = ops[at].operands[1].region.offset;  // rank 0's; this is rank 1
        },
        std::to_string(at));
}

TEST_P(VerifierOfRanks, FindsACollectiveOnAnotherLane) {
  for (const OpKind kind : {OpKind::gather, OpKind::reduce})
    expect_found([&](auto& ops) { ops[ops_of(kind).front()].lane = Lane::compute; },
                 std::string(op_kind_name(kind)));
}

TEST_P(VerifierOfRanks, FindsAContributionAddedBeforeTheRanksSummedTheirs) {
  for (const std::size_t at : ops_of(OpKind::reduce))
    expect_found(
        [&](auto& ops) {
          const Op& reduce = ops[at];
          const auto next = std::find_if(
              ops.begin() + static_cast<std::ptrdiff_t>(at), ops.end(), [&](const Op& op) {
                return op.segment == reduce.segment && op.kind != OpKind::gather &&
                       op.operands[0].what.shard == reduce.operands[0].what.shard &&
                       op.operands[0].what.content == Content::contribution;
              });
          ASSERT_TRUE(next != ops.end());
          std::rotate(ops.begin() + static_cast<std::ptrdiff_t>(at), next, std::next(next));
        },
        std::to_string(at));
}

// Where several are summed over the ranks and not yet added: the bits of their sum.
TEST(VerifierOfPendingContributions, FindsThemAddedInAnotherOrder) {
  for (const int stage : stages) {
    const Program program = make_toy_program({.layers = 2,
                                              .micro_batches = 3,
                                              .group = 3,
                                              .tied = false,
                                              .world = 2,
                                              .zero_stage = stage});
    Policy policy = all_on(Tier::device);
    policy.gradient_slots = 3;
    Plan plan = make_plan(program, roomy_limits(), policy);
    std::vector<Op*> sums;  // of one tile
    for (Op& op : plan.schedules[0].ops)
      if (op.kind == OpKind::accumulate &&
          op.operands[1].what == TileRef{program.find(Role::gradient, 1), 0, Content::value})
        sums.push_back(&op);
    ASSERT_EQ(sums.size(), 3u);
    ASSERT_EQ(joined(verify(program, plan)), "");
    std::swap(sums[0]->operands[0].region, sums[1]->operands[0].region);
    derive_edges(plan.schedules[0]);
    EXPECT_FALSE(verify(program, plan).empty()) << "stage " << stage;
  }
}

TEST_P(VerifierOfRanks, FindsPartialsSummedInAnotherOrder) {
  expect_found(
      [&](auto& ops) {
        auto& operands = ops[ops_of(OpKind::sum).front()].operands;
        std::swap(operands[0], operands[1]);
      },
      "order");
}

TEST_P(VerifierOfRanks, FindsEachEdgeThatCollectivesLackUnlessTheOthersImplyIt) {
  const DroppedEdges dropped =
      drop_edges(program_, plan_, [](const Op& op) { return op.lane == Lane::comm; });
  EXPECT_GT(dropped.needed, 5);
  EXPECT_THAT(dropped.missed, ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Stages, VerifierOfRanks, ::testing::Values(0, 1, 2, 3),
                         [](const auto& stage) { return "Stage" + std::to_string(stage.param); });

// Replicated weights whose home is off the device: what other ranks updated must come home too.
TEST(VerifierOfReplicatedWeights, FindsAnotherRanksTileThatIsNotBroughtHome) {
  const Program program = make_toy_program({.layers = 2, .world = 2, .zero_stage = 1});
  for (const Tier tier : {Tier::host, Tier::nvme}) {
    Plan plan = make_plan(program, roomy_limits(), all_on(tier));
    auto& ops = plan.schedules[0].ops;
    const auto is_other = [&](const Op& op) {
      const TileRef& what = op.operands[0].what;
      const Lane lane = tier == Tier::host ? Lane::state_d2h : Lane::state_write;
      return op.lane == lane && what.shard.valid() && what.tile >= 0 &&
             program.shard(what.shard).role == Role::weight &&
             !program.is_own(what.shard, what.tile);
    };
    const auto at = std::ranges::find_if(ops, is_other);
    ASSERT_TRUE(at != ops.end());
    ops.erase(at);
    derive_edges(plan.schedules[0]);
    EXPECT_FALSE(verify(program, plan).empty()) << tier_name(tier);
  }
}

TEST(PlanOfRanks, RefusesModelStateThatIsNotSharedAsItsStageSays) {
  Program program = make_toy_program({.world = 2});
  program.zero_stage = 1;
  EXPECT_THROW(make_plan(program, roomy_limits(), all_on(Tier::host)), ConfigError);
}

}  // namespace
}  // namespace strata
