// Plans that the checker must refuse: memory that overlaps, parts that are missing, numbers of
// nothing there is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "strata/plan/plan.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"
#include "support/violations.hpp"

namespace strata {
namespace {

using testing::all_on;
using ::testing::HasSubstr;
using testing::joined;
using testing::make_toy_program;
using testing::roomy_limits;

class VerifierRefuses : public ::testing::Test {
 protected:
  std::string found() const { return joined(verify(program_, plan_)); }
  std::vector<Op>& ops() { return plan_.schedules[0].ops; }
  Op& op_of(OpKind kind) { return *std::ranges::find(ops(), kind, &Op::kind); }
  void plan_again(const Policy& policy) {
    plan_ = make_plan(program_, roomy_limits(), policy);
    ASSERT_EQ(found(), "");
  }

  // Every operand that holds `content`, in every schedule.
  template <typename Change>
  void change_all(Content content, Change change) {
    for (Schedule& schedule : plan_.schedules)
      for (Op& op : schedule.ops)
        for (Operand& operand : op.operands)
          if (operand.what.content == content) change(operand.region);
  }
  void derive() {
    for (Schedule& schedule : plan_.schedules) derive_edges(schedule);
  }
  const Region& home(Role role) const { return plan_.homes[program_.find(role, 1).index()][0]; }

  Program program_ = make_toy_program({.micro_batches = 2});
  Plan plan_ = make_plan(program_, roomy_limits(), all_on(Tier::device));
};

// --- Memory

TEST_F(VerifierRefuses, ScratchOnTheHomeOfAMaster) {
  change_all(Content::scratch, [&](Region& r) { r.offset = home(Role::master).offset; });
  derive();
  EXPECT_THAT(found(), HasSubstr("overlap in tier gpu"));
}

TEST_F(VerifierRefuses, ScratchInASlot) {
  change_all(Content::scratch, [&](Region& r) { r.offset = plan_.pools[0].offset; });
  derive();
  EXPECT_THAT(found(), HasSubstr("overlap in tier gpu"));
}

// The slot is named by no pool: what it held tells.
TEST_F(VerifierRefuses, ScratchThatDestroysWhatIsReadLater) {
  plan_.pools.clear();
  ASSERT_EQ(found(), "");
  const Region input = op_of(OpKind::feed).operands[0].region;
  const auto between = std::ranges::find_if(ops(), [&](const Op& op) {
    return op.kind == OpKind::run && program_.segment(op.segment).block == 2;
  });
  between->operands.back().region.offset = input.offset;
  derive();
  EXPECT_THAT(found(), HasSubstr("finds nothing"));
}

TEST_F(VerifierRefuses, FixedRegionsUnderHomesAndSlotsAndEachOther) {
  plan_again(all_on(Tier::host));
  const Plan right = plan_;
  const auto slots = std::ranges::find(plan_.pools, Tier::host, &SlotPool::tier);
  ASSERT_NE(slots, plan_.pools.end());
  const Region scalars = op_of(OpKind::norm).operands.back().region;
  for (const Content content : {Content::partials, Content::scalars})
    for (const std::uint64_t taken : {home(Role::master).offset, slots->offset, scalars.offset}) {
      if (content == Content::scalars && taken == scalars.offset) continue;
      change_all(content, [&](Region& r) { r.offset = r.tier == Tier::host ? taken : r.offset; });
      derive();
      EXPECT_THAT(found(), HasSubstr("overlap in tier cpu"));
      plan_ = right;
    }
}

TEST_F(VerifierRefuses, LossesInTheHomeOfAMaster) {
  plan_again(all_on(Tier::host));
  for (Op& op : ops())
    for (Operand& operand : op.operands)
      if (operand.what.shard == program_.find(Role::metric, 5, 0) &&
          operand.region.tier == Tier::host)
        operand.region.offset = home(Role::master).offset;
  derive();
  EXPECT_THAT(found(), HasSubstr("the metrics"));
}

TEST_F(VerifierRefuses, KeptActivationsUnderTheHomeOfAMaster) {
  plan_again(all_on(Tier::host));
  plan_.homes[program_.find(Role::activation, 1, 0).index()][0].offset = home(Role::master).offset;
  EXPECT_THAT(found(), HasSubstr("what forward keeps"));
}

TEST_F(VerifierRefuses, HomesThatShareAPageOfADrive) {
  plan_again(all_on(Tier::nvme));
  auto& homes = plan_.homes[program_.find(Role::weight, 5).index()];  // less than a page
  for (Op& op : ops())
    for (Operand& operand : op.operands)
      if (operand.region.tier == Tier::nvme && operand.region.offset == homes[0].offset &&
          operand.region.drive == homes[0].drive)
        operand.region.offset += 512;
  homes[0].offset += 512;
  derive();
  EXPECT_THAT(found(), HasSubstr("not aligned"));
}

TEST_F(VerifierRefuses, MemoryToLoadAndSaveThatIsLessThanATile) {
  plan_.transfer.bytes -= 4096;
  EXPECT_THAT(found(), HasSubstr("loads and saves"));
}

TEST_F(VerifierRefuses, SlotsOutsideOfTheirTier) {
  plan_.pools[0].offset = plan_.tier_bytes[0];
  EXPECT_THAT(found(), HasSubstr("lies outside"));
}

TEST_F(VerifierRefuses, MemoryOfADriveThatIsNone) {
  op_of(OpKind::run).operands[0].region.drive = 1;
  EXPECT_THAT(found(), HasSubstr("lies outside"));
}

// A copy of the same tile, twice side by side: bytes from both are no copy.
TEST_F(VerifierRefuses, AReadAcrossTwoCopiesOfATile) {
  plan_again(all_on(Tier::host));
  const auto fetch = std::ranges::find_if(ops(), [&](const Op& op) {
    return op.kind == OpKind::copy && op.lane == Lane::h2d && op.operands[0].what.tile >= 0;
  });
  ASSERT_NE(fetch, ops().end());
  const Operand home = fetch->operands[0];
  ASSERT_EQ(home.region.bytes % 4096, 0u);
  Region beyond = home.region;
  beyond.offset = plan_.tier_bytes[0];
  beyond.tier = Tier::device;
  plan_.tier_bytes[0] += 2 * beyond.bytes;
  plan_.tier_bytes[1] += home.region.bytes;
  std::vector<Op> copies;
  for (const std::uint64_t i : {0u, 1u}) {
    Op copy = *fetch;
    copy.operands[1].region = beyond.part(i * beyond.bytes, beyond.bytes);
    copies.push_back(copy);
  }
  Op across = *fetch;
  across.lane = Lane::comm;
  across.operands[0].region = beyond.part(64, beyond.bytes);
  across.operands[1].region = fetch->operands[1].region;
  copies.push_back(across);
  ops().insert(std::next(fetch), copies.begin(), copies.end());
  derive();
  EXPECT_THAT(found(), HasSubstr("finds a part of"));
}

// The gradient is not needed any more, but for the kernel that is at it.
TEST_F(VerifierRefuses, AnUpdateThatWritesItsWeightOverItsGradient) {
  plan_again(all_on(Tier::nvme));
  const auto update = std::find_if(ops().rbegin(), ops().rend(),
                                   [](const Op& op) { return op.kind == OpKind::update; });
  const auto of_role = [&](Role role) {
    return std::ranges::find_if(update->operands, [&](const Operand& operand) {
      return operand.what.shard.valid() && program_.shard(operand.what.shard).role == role;
    });
  };
  const Region was = of_role(Role::weight)->region, gradient = of_role(Role::gradient)->region;
  of_role(Role::weight)->region.offset = gradient.offset;
  const auto sent = std::find_if(update.base(), ops().end(), [&](const Op& op) {
    return op.kind == OpKind::write && op.operands[0].region.offset == was.offset;
  });
  ASSERT_NE(sent, ops().end());
  sent->operands[0].region.offset = gradient.offset;
  derive();
  EXPECT_THAT(found(), HasSubstr("operands 4 and 0 overlap"));
}

// --- Sizes that do not match

TEST_F(VerifierRefuses, LimitsForOtherDrivesThanThePlanHas) {
  const Plan right = plan_;
  plan_.limits.drive_bytes.pop_back();
  EXPECT_THAT(found(), HasSubstr("2 drives and limits for 1"));
  plan_.limits.drive_bytes.clear();
  EXPECT_THAT(found(), HasSubstr("limits for 0"));
  plan_ = right;
  plan_.drive_bytes.push_back(0);
  EXPECT_THAT(found(), HasSubstr("3 drives"));
}

TEST_F(VerifierRefuses, HomesForOtherShardsThanTheProgramHas) {
  plan_.homes.pop_back();
  EXPECT_THAT(found(), HasSubstr("has homes for"));
  plan_.homes.clear();
  EXPECT_THAT(found(), HasSubstr("has homes for 0 shards"));
}

TEST_F(VerifierRefuses, HomesForOtherTilesThanAShardHas) {
  const Plan right = plan_;
  for (const Role role : {Role::weight, Role::gradient, Role::master, Role::moment1}) {
    plan_.homes[program_.find(role, 1).index()].pop_back();
    EXPECT_THAT(found(), HasSubstr("2 homes for 3 tiles"));
    plan_.homes[program_.find(role, 1).index()].clear();
    EXPECT_THAT(found(), HasSubstr("0 homes for 3 tiles"));
    plan_ = right;
  }
  plan_.homes[program_.find(Role::input, -1, 0).index()].push_back(home(Role::master));
  EXPECT_THAT(found(), HasSubstr("1 homes"));
}

TEST_F(VerifierRefuses, AGradientsHomeOfOtherBytesThanItsTile) {
  plan_.homes[program_.find(Role::gradient, 1).index()][0].bytes -= 4;
  EXPECT_NE(found(), "");
}

TEST_F(VerifierRefuses, NumbersOfNothingThereIs) {
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const Plan right = plan_;
  for (std::size_t i = 0; i < right.schedules[0].ops.size(); i += 7) {
    Op& op = ops()[i];
    Operand& operand = op.operands.front();
    const Op was = op;
    const auto expect_found = [&](const char* what) {
      EXPECT_NE(found(), "") << what << " of op " << i;
      op = was;
    };
    for (const std::int32_t number : {-1, most}) {
      operand.what.shard.value = number;
      expect_found("shard");
      op.segment.value = number;
      if (number == most || op.kind == OpKind::run) expect_found("segment");
      op.id.value = number;
      expect_found("id");
      op.after.push_back({{number}, 0});
      expect_found("edge");
      op.after.push_back({{0}, number});
      expect_found("steps back");
    }
    for (const int tile : {-4, 1 << 20}) {
      operand.what.tile = tile;
      expect_found("tile");
    }
    operand.what.content = static_cast<Content>(77);
    expect_found("content");
    operand.region.tier = static_cast<Tier>(9);
    expect_found("tier");
    operand.region.offset = ~std::uint64_t{0};
    expect_found("offset");
    op.kind = static_cast<OpKind>(99);
    expect_found("kind");
    op.lane = static_cast<Lane>(99);
    expect_found("lane");
    op.operands.clear();
    expect_found("operands");
    op.operands.resize(1);
    if (was.operands.size() > 1) expect_found("number of operands");
    op = was;
  }
  plan_.schedules[0].lanes[2].push_back({most});
  EXPECT_NE(found(), "");
}

// --- Parts that are missing, or there twice

TEST_F(VerifierRefuses, ToDoWithoutASchedule) {
  const Plan right = plan_;
  plan_.schedules.clear();
  EXPECT_THAT(found(), HasSubstr("0 schedules of sequence 'train'"));
  plan_ = right;
  plan_.schedules.pop_back();
  EXPECT_THAT(found(), HasSubstr("0 schedules of sequence 'eval'"));
  plan_.schedules.push_back(plan_.schedules.front());
  EXPECT_THAT(found(), HasSubstr("2 schedules of sequence 'train'"));
  plan_ = right;
  plan_.schedules.back().name = "test";
  EXPECT_THAT(found(), HasSubstr("schedule 'test' has no sequence"));
}

TEST_F(VerifierRefuses, AStepThatReportsNothingOrTwice) {
  const auto report = std::ranges::find(ops(), OpKind::report, &Op::kind);
  const Op twice = *report;
  ops().erase(report);
  derive();
  EXPECT_THAT(found(), HasSubstr("and 0 reports"));
  ops().push_back(twice);
  ops().push_back(twice);
  derive();
  EXPECT_THAT(found(), HasSubstr("and 2 reports"));
}

TEST_F(VerifierRefuses, AnEvaluationThatReportsNothing) {
  auto& eval = plan_.schedules[1].ops;
  std::erase_if(eval, [](const Op& op) { return op.kind == OpKind::report; });
  derive();
  EXPECT_THAT(found(), HasSubstr("'eval' makes 0 norms, 0 expected, and 0 reports"));
}

TEST_F(VerifierRefuses, AReportWithoutTheNorm) {
  op_of(OpKind::report).operands.pop_back();
  derive();
  EXPECT_THAT(found(), HasSubstr("leaves out a loss or the norm"));
}

TEST_F(VerifierRefuses, LossesReportedInAnotherOrder) {
  auto& operands = op_of(OpKind::report).operands;
  std::swap(operands[0], operands[1]);
  derive();
  EXPECT_NE(found(), "");
}

TEST_F(VerifierRefuses, TwoNorms) {
  const auto norm = std::ranges::find(ops(), OpKind::norm, &Op::kind);
  const Op again = *norm;
  ops().insert(norm, again);
  derive();
  EXPECT_THAT(found(), HasSubstr("makes 2 norms, 1 expected"));
}

TEST_F(VerifierRefuses, SumsOfFewerChunksThanATileHas) {
  Program program = make_toy_program({.tile_elements = 8192});
  Plan plan = make_plan(program, roomy_limits(), all_on(Tier::host));
  auto& ops = plan.schedules[0].ops;
  const auto norm = std::ranges::find(ops, OpKind::norm, &Op::kind);
  ASSERT_EQ(norm->operands[0].region.bytes, 2 * sizeof(double));
  norm->operands[0].region.bytes = sizeof(double);
  derive_edges(plan.schedules[0]);
  EXPECT_THAT(joined(verify(program, plan)), HasSubstr("8 bytes of 16"));
}

// --- A policy that says something else

TEST_F(VerifierRefuses, AnOrderOfUpdatesThatOpsDoNotFollow) {
  for (const Tier tier : {Tier::device, Tier::host, Tier::nvme})
    for (const UpdateOrder planned :
         {UpdateOrder::after_backward, UpdateOrder::deferred, UpdateOrder::during_backward})
      for (const UpdateOrder said :
           {UpdateOrder::after_backward, UpdateOrder::deferred, UpdateOrder::during_backward}) {
        Policy policy = all_on(tier);
        policy.update_order = planned;
        plan_again(policy);
        plan_.policy.update_order = said;
        EXPECT_EQ(found().empty(), planned == said)
            << tier_name(tier) << " " << static_cast<int>(planned) << static_cast<int>(said);
      }
}

TEST_F(VerifierRefuses, AnUpdateDuringBackwardThatWaitsForTheNorm) {
  Policy policy = all_on(Tier::host);
  policy.update_order = UpdateOrder::during_backward;
  plan_again(policy);
  const auto last = std::find_if(ops().rbegin(), ops().rend(),
                                 [](const Op& op) { return op.kind == OpKind::update; });
  const auto norm = std::ranges::find(ops(), OpKind::norm, &Op::kind);
  std::rotate(std::prev(last.base()), last.base(), std::next(norm));
  derive();
  EXPECT_THAT(found(), HasSubstr("comes after the norm"));
}

}  // namespace
}  // namespace strata
