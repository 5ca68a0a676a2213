#include "strata/plan/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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
using testing::joined;
using testing::make_toy_program;
using testing::random_policy;
using testing::roomy_limits;
using testing::ToyShape;
using testing::with_split_masters;

double fraction_on(const Program& program, const Plan& plan, Role role, Tier tier) {
  double on = 0, all = 0;
  for (const Shard& shard : program.shards) {
    if (shard.role != role) continue;
    for (const Region& home : plan.homes[shard.id.index()]) {
      all += static_cast<double>(home.bytes);
      on += home.tier == tier ? static_cast<double>(home.bytes) : 0;
    }
  }
  return on / all;
}

TEST(Plan, VerifiesForEachPlacementInOneTier) {
  for (const Tier tier : {Tier::device, Tier::host, Tier::nvme})
    for (const int micro_batches : {1, 3}) {
      const Program program = make_toy_program({.micro_batches = micro_batches});
      const Plan plan = make_plan(program, roomy_limits(), all_on(tier));
      EXPECT_EQ(joined(verify(program, plan)), "") << tier_name(tier);
    }
}

TEST(Plan, VerifiesForRandomPlacementsAndSlotCounts) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const ToyShape shape{.layers = 1 + static_cast<int>(seed % 5),
                         .micro_batches = 1 + static_cast<int>(seed % 3),
                         .kept_layers = static_cast<int>(seed % 7),
                         .tied = seed % 2 == 0};
    const Program program = make_toy_program(shape);
    Policy policy = random_policy(seed);
    if (seed % 4 == 3) policy.update_order = UpdateOrder::during_backward;
    const Plan plan = make_plan(program, roomy_limits(), policy);
    ASSERT_EQ(joined(verify(program, plan)), "") << "seed " << seed;
  }
}

TEST(Plan, VerifiesForUpdatesThatReadTheWeightUnderEveryPlacement) {
  const Program program = with_split_masters(make_toy_program({.layers = 2, .micro_batches = 2}));
  for (const Tier tier : {Tier::device, Tier::host, Tier::nvme})
    EXPECT_EQ(joined(verify(program, make_plan(program, roomy_limits(), all_on(tier)))), "");
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Policy policy = random_policy(seed);
    if (seed % 2 == 1) policy.update_order = UpdateOrder::during_backward;
    const Plan plan = make_plan(program, roomy_limits(), policy);
    ASSERT_EQ(joined(verify(program, plan)), "") << "seed " << seed;
  }
}

// Of each tile of a role, the tiles being whole.
std::uint64_t home_bytes(const Program& program, Role role) {
  Policy policy = all_on(Tier::host);
  const Plan plan = make_plan(program, roomy_limits(), policy);
  const auto usage =
      std::ranges::find_if(plan.usage, [&](const Usage& u) { return u.is_home && u.role == role; });
  return usage->bytes[static_cast<std::size_t>(Tier::host)];
}

TEST(Plan, CountsTheBytesOfEachFormatWithItsScales) {
  constexpr std::int64_t tile = 1 << 20, layers = 3;
  const Program program = with_split_masters(make_toy_program({.layers = layers,
                                                               .layer_elements = 2 * tile,
                                                               .embedding_elements = 2 * tile,
                                                               .tile_elements = tile}));
  const std::uint64_t rest = 4096;  // the head's 128 elements
  const auto elements = static_cast<std::uint64_t>((layers + 1) * 2 * tile);
  EXPECT_EQ(home_bytes(program, Role::weight), 2 * elements + rest);
  EXPECT_EQ(home_bytes(program, Role::master), 2 * elements + rest);
  EXPECT_EQ(home_bytes(program, Role::moment1), elements + elements / 64 + rest);
}

TEST(Plan, CutsSlotsForTilesOfEachFormat) {
  const Program program = with_split_masters(make_toy_program({}));
  const Plan plan = make_plan(program, roomy_limits(), all_on(Tier::nvme));
  const auto slot_bytes = [&](const std::string& name) {
    return std::ranges::find(plan.pools, name, &SlotPool::name)->slot_bytes;
  };
  EXPECT_EQ(slot_bytes("master staging"), 2u * 4096);
  EXPECT_EQ(slot_bytes("moment1 staging"), 2u * 4096) << "codes and scales, to whole pages";
  EXPECT_EQ(slot_bytes("updated weight staging"), 2u * 4096);
}

// On the device only what lives there is updated: a split master's weight is part of it.
TEST(Plan, UpdatesOnTheHostWhatLivesInPartOnTheDevice) {
  const Program program = with_split_masters(make_toy_program({}));
  Policy policy = all_on(Tier::device);
  const auto update_lanes = [&] {
    std::vector<Lane> lanes;
    const Plan plan = make_plan(program, roomy_limits(), policy);
    for (const Op& op : plan.schedules[0].ops)
      if (op.kind == OpKind::update) lanes.push_back(op.lane);
    return lanes;
  };
  EXPECT_THAT(update_lanes(), ::testing::Each(Lane::compute));
  policy.fractions[static_cast<std::size_t>(Role::weight)] = {0, 1, 0};
  EXPECT_THAT(update_lanes(), ::testing::Each(Lane::update));
}

TEST(Plan, FollowsFractionsToWithinOneTile) {
  const Program program = make_toy_program({.layers = 20});
  Policy policy;
  policy.fractions[static_cast<std::size_t>(Role::master)] = {0.25, 0.35, 0.4};
  const Plan plan = make_plan(program, roomy_limits(), policy);
  double total = 0;
  for (const Shard& shard : program.shards)
    if (shard.role == Role::master) total += static_cast<double>(shard.bytes());
  const double tile = static_cast<double>(program.tile_elements * 4) / total;
  EXPECT_NEAR(fraction_on(program, plan, Role::master, Tier::device), 0.25, tile);
  EXPECT_NEAR(fraction_on(program, plan, Role::master, Tier::host), 0.35, tile);
  EXPECT_NEAR(fraction_on(program, plan, Role::master, Tier::nvme), 0.4, tile);
}

TEST(Plan, SpreadsFractionsOverTheSchedule) {
  const Program program = make_toy_program({.layers = 16});
  Policy policy;
  policy.fractions[static_cast<std::size_t>(Role::moment1)] = {0, 0.5, 0.5};
  const Plan plan = make_plan(program, roomy_limits(), policy);
  for (const Shard& shard : program.shards) {
    if (shard.role != Role::moment1 || plan.homes[shard.id.index()].size() < 3) continue;
    const auto on_nvme =
        std::ranges::count(plan.homes[shard.id.index()], Tier::nvme, &Region::tier);
    EXPECT_GE(on_nvme, 1) << shard.name;
    EXPECT_LT(on_nvme, static_cast<std::ptrdiff_t>(plan.homes[shard.id.index()].size()))
        << shard.name;
  }
}

TEST(Plan, StripesNvmeOverDrivesByBandwidth) {
  const Program program = make_toy_program({.layers = 30});
  TierLimits limits = roomy_limits(2);
  limits.drive_weights = {3, 1};
  const Plan plan = make_plan(program, limits, all_on(Tier::nvme));
  EXPECT_NEAR(static_cast<double>(plan.drive_bytes[0]) / static_cast<double>(plan.drive_bytes[1]),
              3.0, 0.1);
}

TEST(Plan, RefusesALimitOneTileTooSmallNamingTierAndContributors) {
  const Program program = make_toy_program({});
  const Plan fits = make_plan(program, roomy_limits(), all_on(Tier::host));
  TierLimits limits = roomy_limits();
  limits.host_bytes = fits.tier_bytes[1];
  EXPECT_NO_THROW(make_plan(program, limits, all_on(Tier::host)));
  limits.host_bytes -= static_cast<std::uint64_t>(program.tile_elements * 4);
  try {
    make_plan(program, limits, all_on(Tier::host));
    FAIL() << "accepted";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.wanted_bytes(), fits.tier_bytes[1]);
    EXPECT_EQ(error.free_bytes(), limits.host_bytes);
    EXPECT_NE(std::string(error.what()).find("tier cpu"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("master 284 KiB"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("offload.cpu_limit"), std::string::npos);
  }
}

TEST(Plan, LeavesOfHostMemoryWhatLoadsAndSavesTake) {
  const Program program = make_toy_program({});
  TierLimits limits = roomy_limits();
  limits.host_bytes = make_plan(program, limits, all_on(Tier::host)).tier_bytes[1] + 1000;
  limits.buffer_bytes = 1000;
  const Plan fits = make_plan(program, limits, all_on(Tier::host));
  EXPECT_TRUE(verify(program, fits).empty());
  limits.buffer_bytes = 1001;
  try {
    make_plan(program, limits, all_on(Tier::host));
    FAIL() << "accepted";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.wanted_bytes(), limits.host_bytes + 1);
    EXPECT_NE(std::string(error.what()).find("beside the tier, to load and to save in"),
              std::string::npos)
        << error.what();
  }
  Plan wrong = fits;
  wrong.limits.buffer_bytes = 1001;
  EXPECT_FALSE(verify(program, wrong).empty());
}

TEST(Plan, RefusesFractionsThatDoNotSumToOne) {
  Policy policy;
  policy.fractions[0] = {0.5, 0.6, 0};
  EXPECT_THROW(make_plan(make_toy_program({}), roomy_limits(), policy), ConfigError);
}

TEST(Plan, RefusesNvmeWithoutADrive) {
  EXPECT_THROW(make_plan(make_toy_program({}), roomy_limits(0), all_on(Tier::nvme)), ConfigError);
}

TEST(Plan, IsAPureFunction) {
  const Program program = make_toy_program({});
  const Plan a = make_plan(program, roomy_limits(), random_policy(5)),
             b = make_plan(program, roomy_limits(), random_policy(5));
  EXPECT_EQ(plan_hash(program, a), plan_hash(program, b));
  EXPECT_EQ(plan_to_json(program, a), plan_to_json(program, b));
  EXPECT_NE(plan_hash(program, a),
            plan_hash(program, make_plan(program, roomy_limits(), random_policy(6))));
}

TEST(Plan, JsonHoldsEveryOpAndPeak) {
  const Program program = make_toy_program({});
  const Plan plan = make_plan(program, roomy_limits(), random_policy(2));
  const auto json = nlohmann::json::parse(plan_to_json(program, plan));
  EXPECT_EQ(json["schedules"][0]["ops"].size(), plan.schedules[0].ops.size());
  EXPECT_EQ(json["peak_bytes"]["cpu"], plan.tier_bytes[1]);
}

TEST(Plan, UsageAddsUpToThePeakOfEachTier) {
  const Program program = make_toy_program({.micro_batches = 2});
  const Plan plan = make_plan(program, roomy_limits(), random_policy(9));
  for (std::size_t tier = 0; tier < num_tiers; ++tier) {
    std::uint64_t sum = 0;
    for (const Usage& usage : plan.usage) sum += usage.bytes[tier];
    EXPECT_EQ(sum, plan.tier_bytes[tier]) << tier;
  }
}

TEST(Plan, GivesASegmentAllTheSlotsItNeedsAtOnce) {
  // Embedding and head in one size class: a tied loss needs the weights and contributions of both.
  const Program program = make_toy_program({.embedding_elements = 900, .tied = true});
  Policy policy;
  policy.weight_slots = policy.gradient_slots = 1;
  const Plan plan = make_plan(program, roomy_limits(), policy);
  EXPECT_EQ(joined(verify(program, plan)), "");
}

TEST(Plan, UpdatesDuringBackwardPrecedeTheNorm) {
  const Program program = make_toy_program({});
  Policy policy;
  policy.update_order = UpdateOrder::during_backward;
  const Plan plan = make_plan(program, roomy_limits(), policy);
  const auto& ops = plan.schedules[0].ops;
  const auto norm = std::ranges::find(ops, OpKind::norm, &Op::kind);
  EXPECT_EQ(std::count_if(norm, ops.end(), [](const Op& op) { return op.kind == OpKind::update; }),
            0);
  EXPECT_GT(
      std::count_if(ops.begin(), norm, [](const Op& op) { return op.kind == OpKind::update; }), 0);
}

void expect_forward_waits_only_for_its_block(const Program& program, const Plan& plan) {
  const auto& ops = plan.schedules[0].ops;
  for (const Op& op : ops) {
    const Segment& segment = program.segment(op.segment);
    if (segment.kind != SegmentKind::forward) continue;
    for (const Edge& edge : op.after) {
      const Segment& cause = program.segment(ops[edge.op.index()].segment);
      if (edge.steps_back != 1 || cause.kind != SegmentKind::update) continue;
      EXPECT_EQ(cause.block, segment.block) << segment.name << " waits for " << cause.name;
    }
  }
}

TEST(Plan, LetsTheNextForwardStartWhileLaterBlocksAreStillUpdated) {
  const Program plain = make_toy_program({.layers = 8});
  for (const Program& program : {plain, with_split_masters(plain)})
    for (const Tier tier : {Tier::host, Tier::nvme})
      expect_forward_waits_only_for_its_block(program,
                                              make_plan(program, roomy_limits(), all_on(tier)));
}

// --- The checker finds what the planner might get wrong.

class VerifierFinds : public ::testing::Test {
 protected:
  Program program_ = make_toy_program({.micro_batches = 2});
  Plan plan_ = make_plan(program_, roomy_limits(), random_policy(4));
  Schedule& train() { return plan_.schedules[0]; }
};

TEST_F(VerifierFinds, EachEdgeThatIsMissingUnlessTheOthersImplyIt) {
  const DroppedEdges dropped =
      drop_edges(program_, plan_, [](const Op& op) { return op.id.value % 2 == 0; });
  EXPECT_GT(dropped.needed, 50);
  EXPECT_THAT(dropped.missed, ::testing::IsEmpty());
}

TEST_F(VerifierFinds, AForwardEdge) {
  train().ops[3].after.push_back({OpId{10}, 0});
  EXPECT_FALSE(verify(program_, plan_).empty());
}

TEST_F(VerifierFinds, AnOpLeftOut) {
  for (const OpKind kind : {OpKind::copy, OpKind::read, OpKind::write, OpKind::accumulate,
                            OpKind::square, OpKind::update, OpKind::feed}) {
    Plan plan = plan_;
    auto& ops = plan.schedules[0].ops;
    // The last of its kind: an early write may be one that nothing reads back, because staging
    // still holds the tile.
    const auto at =
        std::find_if(ops.rbegin(), ops.rend(), [&](const Op& op) { return op.kind == kind; });
    ASSERT_TRUE(at != ops.rend()) << "the plan has no " << op_kind_name(kind);
    ops.erase(std::next(at).base());
    derive_edges(plan.schedules[0]);
    EXPECT_FALSE(verify(program_, plan).empty()) << op_kind_name(kind);
  }
}

TEST_F(VerifierFinds, ASegmentOutOfOrder) {
  std::vector<std::size_t> runs;
  for (std::size_t i = 0; i < train().ops.size(); ++i)
    if (train().ops[i].kind == OpKind::run) runs.push_back(i);
  std::swap(train().ops[runs[2]], train().ops[runs[3]]);
  derive_edges(train());
  EXPECT_FALSE(verify(program_, plan_).empty());
}

TEST_F(VerifierFinds, ARegionOutsideItsTier) {
  plan_.tier_bytes[1] /= 2;
  EXPECT_FALSE(verify(program_, plan_).empty());
}

TEST_F(VerifierFinds, AHomeUnderTheRegionThatLoadsAndSaves) {
  for (auto& homes : plan_.homes)
    for (Region& home : homes)
      if (home.tier == Tier::host) plan_.transfer.offset = home.offset;
  EXPECT_FALSE(verify(program_, plan_).empty());
}

TEST_F(VerifierFinds, AReportWithoutALoss) {
  auto& ops = train().ops;
  const auto report = std::ranges::find(ops, OpKind::report, &Op::kind);
  report->operands.erase(report->operands.begin());
  derive_edges(train());
  EXPECT_FALSE(verify(program_, plan_).empty());
}

TEST_F(VerifierFinds, TwoHomesThatOverlap) {
  const ShardId master = program_.find(Role::master, 1);
  plan_.homes[master.index()][0] = plan_.homes[program_.find(Role::master, 2).index()][0];
  EXPECT_FALSE(verify(program_, plan_).empty());
}

TEST_F(VerifierFinds, ASlotUsedTwiceAtOnce) {
  // One slot for all weights of a class, though the plan says two: fetches must then wait, and the
  // old edges do not say so.
  for (Op& op : train().ops)
    for (Operand& operand : op.operands)
      if (operand.region.tier == Tier::host && operand.what.content == Content::value &&
          op.lane == Lane::state_read && operand.access == Access::produce)
        operand.region.offset = 0;
  EXPECT_FALSE(verify(program_, plan_).empty());
}

// Updates that read the weight: what may go wrong there.
class VerifierFindsInUpdates : public ::testing::Test {
 protected:
  Program program_ = with_split_masters(make_toy_program({}));
  Plan plan_ = make_plan(program_, roomy_limits(), all_on(Tier::nvme));
  Op& an_update() {
    auto& ops = plan_.schedules[0].ops;
    return *std::find_if(ops.rbegin(), ops.rend(),
                         [](const Op& op) { return op.kind == OpKind::update; });
  }
  Operand& weight(Op& op) {
    return *std::ranges::find_if(op.operands, [&](const Operand& operand) {
      return operand.what.shard.valid() && program_.shard(operand.what.shard).role == Role::weight;
    });
  }
};

TEST_F(VerifierFindsInUpdates, AWeightThatIsNotFetched) {
  const Region slot = weight(an_update()).region;
  auto& ops = plan_.schedules[0].ops;
  const auto fetch = std::find_if(ops.rbegin(), ops.rend(), [&](const Op& op) {
    return op.kind == OpKind::read && op.operands[1].region.offset == slot.offset;
  });
  ASSERT_TRUE(fetch != ops.rend());
  ops.erase(std::next(fetch).base());
  derive_edges(plan_.schedules[0]);
  EXPECT_FALSE(verify(program_, plan_).empty());
}

TEST_F(VerifierFindsInUpdates, AWeightThatIsOnlyWritten) {
  weight(an_update()).access = Access::produce;
  derive_edges(plan_.schedules[0]);
  EXPECT_FALSE(verify(program_, plan_).empty());
}

TEST_F(VerifierFindsInUpdates, AnOperandOfOtherBytesThanItsTile) {
  weight(an_update()).region.bytes -= 2;
  EXPECT_FALSE(verify(program_, plan_).empty());
}

TEST_F(VerifierFindsInUpdates, AHomeOfOtherBytesThanItsTile) {
  plan_.homes[program_.find(Role::moment1, 1).index()][0].bytes -= 4;
  EXPECT_FALSE(verify(program_, plan_).empty());
}

}  // namespace
}  // namespace strata
