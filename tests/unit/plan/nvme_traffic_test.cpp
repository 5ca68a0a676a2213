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

}  // namespace
}  // namespace strata
