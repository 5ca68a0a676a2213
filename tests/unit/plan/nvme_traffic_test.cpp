#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/plan/plan.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"

namespace strata {
namespace {

using testing::all_on;
using testing::make_toy_program;
using testing::roomy_limits;

constexpr std::array optimizer_roles = {Role::master, Role::moment1, Role::moment2};

Policy optimizer_on_nvme() {
  Policy policy = all_on(Tier::host);
  for (const Role role : optimizer_roles)
    policy.fractions[static_cast<std::size_t>(role)] = {0, 0, 1};
  return policy;
}

// What the drive must see of the tiles of some roles that live on it, each moved once.
std::uint64_t bytes_once(const Program& program, const Plan& plan, std::span<const Role> roles) {
  std::uint64_t bytes = 0;
  for (const Shard& shard : program.shards) {
    if (std::ranges::find(roles, shard.role) == roles.end()) continue;
    for (const Region& home : plan.homes[shard.id.index()])
      if (home.tier == Tier::nvme) bytes += align_up(home.bytes, plan.limits.io_alignment);
  }
  return bytes;
}

TEST(NvmeTraffic, IsTheOptimizerStateInBothDirectionsWhereThatIsAllOnNvme) {
  const Program program = make_toy_program({.micro_batches = 2});
  const Plan plan = make_plan(program, roomy_limits(1), optimizer_on_nvme());
  const NvmeTraffic traffic = nvme_traffic(plan, "train");
  const std::uint64_t state = bytes_once(program, plan, optimizer_roles);
  EXPECT_GT(state, 0u);
  EXPECT_EQ(traffic.read_bytes(), state);
  EXPECT_EQ(traffic.written_bytes(), state);
}

TEST(NvmeTraffic, IsNothingWhereNothingLivesOnNvme) {
  const Plan plan = make_plan(make_toy_program({}), roomy_limits(1), all_on(Tier::host));
  const NvmeTraffic traffic = nvme_traffic(plan, "train");
  EXPECT_EQ(traffic.read_bytes(), 0u);
  EXPECT_EQ(traffic.written_bytes(), 0u);
}

TEST(NvmeTraffic, CountsReadsOfWeightsInEveryMicroBatch) {
  Policy policy = all_on(Tier::host);
  policy.fractions[static_cast<std::size_t>(Role::weight)] = {0, 0, 1};
  const auto reads = [&](int micro_batches) {
    const Program program = make_toy_program({.micro_batches = micro_batches});
    return nvme_traffic(make_plan(program, roomy_limits(1), policy), "train").read_bytes();
  };
  EXPECT_GE(reads(1), bytes_once(make_toy_program({}),
                                 make_plan(make_toy_program({}), roomy_limits(1), policy),
                                 std::array{Role::weight}));
  EXPECT_GT(reads(3), reads(1));
}

TEST(NvmeTraffic, IsDividedOverDrivesAsTheirWeights) {
  const Program program = make_toy_program({.layers = 30});
  TierLimits limits = roomy_limits(2);
  limits.drive_weights = {3, 1};
  const NvmeTraffic traffic =
      nvme_traffic(make_plan(program, limits, optimizer_on_nvme()), "train");
  ASSERT_EQ(traffic.drive_written_bytes.size(), 2u);
  EXPECT_NEAR(static_cast<double>(traffic.drive_written_bytes[0]) /
                  static_cast<double>(traffic.drive_written_bytes[1]),
              3.0, 0.2);
  EXPECT_EQ(traffic.written_bytes(),
            traffic.drive_written_bytes[0] + traffic.drive_written_bytes[1]);
}

TEST(NvmeTraffic, RefusesAScheduleThatThePlanDoesNotHave) {
  const Plan plan = make_plan(make_toy_program({}), roomy_limits(1), all_on(Tier::host));
  EXPECT_THROW(nvme_traffic(plan, "no such"), ConfigError);
}

Op op_between(OpKind kind, const Region& from, const Region& to) {
  Op op;
  op.kind = kind;
  op.operands = {{{}, from, Access::read}, {{}, to, Access::produce}};
  return op;
}

Region bytes_on(Tier tier, std::uint64_t bytes) { return {tier, 0, 0, bytes}; }

TEST(LinkBytes, AreRoundedForADriveAlone) {
  const Region disk = bytes_on(Tier::nvme, 5000), host = bytes_on(Tier::host, 5000);
  const Region device = bytes_on(Tier::device, 5000);
  EXPECT_EQ(link_bytes(op_between(OpKind::read, disk, host), 4096), 8192u);
  EXPECT_EQ(link_bytes(op_between(OpKind::write, host, disk), 4096), 8192u);
  EXPECT_EQ(link_bytes(op_between(OpKind::copy, host, device), 4096), 5000u);
  EXPECT_EQ(link_bytes(op_between(OpKind::copy, device, host), 4096), 5000u);
  EXPECT_EQ(link_bytes(op_between(OpKind::update, host, host), 4096), 0u);
}

TEST(LinkBytes, AreNoneWithinOneTier) {
  for (const Tier tier : {Tier::device, Tier::host})
    EXPECT_EQ(
        link_bytes(op_between(OpKind::copy, bytes_on(tier, 5000), bytes_on(tier, 5000)), 4096), 0u);
}

TEST(LinkBytes, OfACollectiveAreThoseOfOtherRanks) {
  const Region part = bytes_on(Tier::device, 1000), whole = bytes_on(Tier::device, 8000);
  EXPECT_EQ(link_bytes(op_between(OpKind::gather, part, whole), 4096), 7000u);
  EXPECT_EQ(link_bytes(op_between(OpKind::reduce, whole, part), 4096), 7000u);
}

}  // namespace
}  // namespace strata
