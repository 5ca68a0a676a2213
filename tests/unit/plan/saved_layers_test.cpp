// Homes and movements of what layers save for their backward, and what the checker says of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/policies.hpp"
#include "support/toy_program.hpp"

namespace strata {
namespace {

using testing::make_toy_program;
using testing::roomy_limits;

std::uint64_t usage_of(const Plan& plan, const std::string& name, Tier tier) {
  const auto found = std::ranges::find(plan.usage, name, &Usage::name);
  return found == plan.usage.end() ? 0 : found->bytes[static_cast<std::size_t>(tier)];
}

TEST(SavedLayers, KeepsWhatLayersSaveOnTheDeviceUnlessToldOtherwise) {
  const Program program = make_toy_program({.layers = 4, .kept_layers = 3});
  const std::uint64_t saved = 3 * 64 * 16 * sizeof(float);
  const Plan plan = make_plan(program, roomy_limits(), Policy{});
  EXPECT_EQ(usage_of(plan, "saved", Tier::device), 3 * saved);
  EXPECT_EQ(usage_of(plan, "saved slots", Tier::device), 0u) << "produced where it lives";
  Policy policy;
  policy.fractions[static_cast<std::size_t>(Role::saved)] = {0, 1, 0};
  const Plan offloaded = make_plan(program, roomy_limits(), policy);
  EXPECT_EQ(usage_of(offloaded, "saved", Tier::device), 0u);
  EXPECT_EQ(usage_of(offloaded, "saved", Tier::host), 3 * saved);
  EXPECT_EQ(usage_of(offloaded, "saved slots", Tier::device),
            static_cast<std::uint64_t>(policy.activation_slots) * saved);
}

TEST(SavedLayers, SharesMemoryAmongWhatIsSavedInTurn) {
  const auto home_bytes_of = [](int micro_batches, int group) {
    const Program program = make_toy_program({.layers = 4,
                                              .micro_batches = micro_batches,
                                              .group = group,
                                              .kept_layers = 4,
                                              .tied = false});
    return usage_of(make_plan(program, roomy_limits(), Policy{}), "saved", Tier::device);
  };
  EXPECT_EQ(home_bytes_of(3, 1), home_bytes_of(1, 1));
  EXPECT_EQ(home_bytes_of(3, 3), 3 * home_bytes_of(1, 1)) << "live together";
}

// It moves home after its forward and is fetched for its backward, once each.
TEST(SavedLayers, MovesWhatIsSavedToNvmeAndBack) {
  const Program program = make_toy_program({.layers = 3, .kept_layers = 3});
  Policy policy;
  policy.fractions[static_cast<std::size_t>(Role::saved)] = {0, 0, 1};
  policy.activation_slots = 2;
  const Plan plan = make_plan(program, roomy_limits(), policy);
  std::map<OpKind, int> moves;
  for (const Op& op : plan.schedules[0].ops)
    if (op.kind != OpKind::run && program.shard(op.operands[0].what.shard).role == Role::saved)
      ++moves[op.kind];
  EXPECT_EQ(moves[OpKind::write], 3);
  EXPECT_EQ(moves[OpKind::read], 1) << "the last two still fill their slots";
  EXPECT_TRUE(verify(program, plan).empty());
}

TEST(SavedLayers, NeedsNoMoreRoomToLoadAndSaveForLayersThatAreKept) {
  const Plan plain = make_plan(make_toy_program({}), roomy_limits(), Policy{}),
             keeping = make_plan(make_toy_program({.kept_layers = 4}), roomy_limits(), Policy{});
  EXPECT_EQ(keeping.transfer.bytes, plain.transfer.bytes);
}

// More layers that keep their insides in host memory than there are slots on the device.
struct Saved {
  Saved() { policy.fractions[static_cast<std::size_t>(Role::saved)] = {0, 1, 0}; }
  bool is_saved(const Op& op) const {
    const ShardId shard = op.operands[0].what.shard;
    return op.kind == OpKind::copy && program.shard(shard).role == Role::saved;
  }
  Policy policy;
  Program program = make_toy_program({.layers = 6, .kept_layers = 6});
};

TEST(VerifierFindsOfSavedLayers, AMoveLeftOut) {
  Saved saved;
  const Plan right = make_plan(saved.program, roomy_limits(), saved.policy);
  ASSERT_TRUE(verify(saved.program, right).empty());
  for (const Lane lane : {Lane::d2h, Lane::h2d}) {
    Plan plan = right;
    auto& ops = plan.schedules[0].ops;
    const auto at = std::ranges::find_if(
        ops, [&](const Op& op) { return op.lane == lane && saved.is_saved(op); });
    ASSERT_NE(at, ops.end());
    ops.erase(at);
    derive_edges(plan.schedules[0]);
    EXPECT_FALSE(verify(saved.program, plan).empty()) << lane_name(lane);
  }
}

TEST(VerifierFindsOfSavedLayers, AHomeSharedByTwoThatLiveTogether) {
  Saved saved;
  Plan plan = make_plan(saved.program, roomy_limits(), saved.policy);
  const auto home = [&](int block) {
    return plan.homes[saved.program.find(Role::saved, block, 0).index()].front();
  };
  const Region first = home(1), second = home(2);
  for (Op& op : plan.schedules[0].ops)
    for (Operand& operand : op.operands)
      if (operand.region.overlaps(second)) operand.region = first;
  derive_edges(plan.schedules[0]);
  EXPECT_FALSE(verify(saved.program, plan).empty());
}

}  // namespace
}  // namespace strata
