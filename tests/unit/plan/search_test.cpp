#include "strata/plan/search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "strata/core/error.hpp"
#include "src/plan/estimate.hpp"
#include "support/machines.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"

namespace strata {
namespace {

using testing::slow_machine;
using testing::ToyShape;
using testing::worked_toy;

// Four tiles of each role: a quarter of the bytes is one tile.
constexpr ToyShape tiny{.layers = 2,
                        .micro_batches = 2,
                        .layer_elements = 4096,
                        .embedding_elements = 4096,
                        .tokens = 64,
                        .hidden = 16,
                        .tile_elements = 4096,
                        .tied = false};

ProgramMaker tiny_maker(double flops) {
  return [=](const ProgramVariant&) { return worked_toy(tiny, flops); };
}

SearchSpace placement_space() {
  SearchSpace space;
  space.variants = space.engines = false;
  space.micro_batches = tiny.micro_batches;
  return space;
}

std::vector<TierFractions> quarters(int tiers) {
  std::vector<TierFractions> all;
  for (int device = 0; device <= 4; ++device)
    for (int nvme = 0; nvme <= (tiers == 3 ? 4 - device : 0); ++nvme)
      all.push_back({device / 4.0, (4 - device - nvme) / 4.0, nvme / 4.0});
  return all;
}

Policy placed(const TierFractions& weight, const TierFractions& gradient,
              const TierFractions& state, const TierFractions& activation) {
  Policy policy;
  const auto set = [&](Role role, const TierFractions& f) {
    policy.fractions[static_cast<std::size_t>(role)] = f;
  };
  set(Role::weight, weight);
  set(Role::gradient, gradient);
  for (const Role role : {Role::master, Role::moment1, Role::moment2}) set(role, state);
  set(Role::activation, activation);
  return policy;
}

bool fits(const Plan& plan, const TierLimits& limits) {
  return plan.tier_bytes[0] <= limits.device_bytes && plan.tier_bytes[1] <= limits.host_bytes;
}

Policy g_best;
void show(const char* name, const Policy& p) {
  std::printf("%s: ", name);
  for (int r : {0, 1, 2, 5}) std::printf("%g/%g/%g ", p.fractions[r].device, p.fractions[r].host, p.fractions[r].nvme);
  std::printf("\n");
}
// The best of every placement in quarters.
double exhaustive(const Program& program, const TierLimits& limits, const MachineProfile& machine,
                  Policy slots) {
  const int tiers = limits.drive_bytes.empty() ? 2 : 3;
  TierLimits open = limits;
  open.device_bytes = open.host_bytes = 1ull << 40;
  double best = 1e300;
  const auto all = quarters(tiers);
  for (const TierFractions& weight : all)
    for (const TierFractions& gradient : all)
      for (const TierFractions& state : all)
        for (const TierFractions& activation : {TierFractions{1, 0, 0}, TierFractions{0, 1, 0}}) {
          Policy policy = placed(weight, gradient, state, activation);
          policy.weight_slots = slots.weight_slots;
          policy.state_slots = slots.state_slots;
          policy.staging_slots = slots.staging_slots;
          const Plan plan = make_plan(program, open, policy);
          if (!fits(plan, limits)) continue;
          const double sec = simulate(program, plan, "train", machine).step_seconds;
          if (sec < best) { best = sec; g_best = policy; }
        }
  return best;
}

TierLimits tight_limits(std::uint64_t seed, int drives) {
  TierLimits limits;
  limits.device_bytes = (180 + 40 * (seed % 7)) * 1024;
  limits.host_bytes = (200 + 60 * (seed % 5)) * 1024;
  if (drives == 0) limits.host_bytes += 400 * 1024;
  for (int i = 0; i < drives; ++i) limits.drive_bytes.push_back(1ull << 40);
  return limits;
}

TEST(Search, FindsWhatTryingEverythingFinds) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const int drives = seed % 5 == 4 ? 1 : 0;
    const MachineProfile machine = slow_machine(seed, drives);
    const TierLimits limits = tight_limits(seed, drives);
    const double flops = 1e5 * static_cast<double>(1 + seed % 4 * 5);
    const Program program = worked_toy(tiny, flops);
    SearchSpace space = placement_space();
    space.slots = false;
    const auto t0 = std::chrono::steady_clock::now();
    const SearchResult found = search(tiny_maker(flops), limits, machine, {}, space);
    const auto t1 = std::chrono::steady_clock::now();
    const double best = exhaustive(program, limits, machine, {});
    const auto t2 = std::chrono::steady_clock::now();
    EXPECT_LE(found.simulation.step_seconds, 1.01 * best) << "seed " << seed;
    if (found.simulation.step_seconds > 1.001 * best) {
      show("found", found.policy); show("best", g_best);
      const Estimator e(program, machine, limits.drive_bytes.size());
      for (const Policy& p : {found.policy, g_best}) { auto x = e.estimate(p); std::printf("  est %g traffic %g mem %g %g lim %g %g\n", x.seconds, x.traffic, x.tier_bytes[0], x.tier_bytes[1], double(limits.device_bytes), double(limits.host_bytes)); }
    }
    std::printf("seed %d found %.6f best %.6f sims %d bound_by %s  %.3f s %.3f s\n", int(seed),
                found.simulation.step_seconds, best, found.simulations,
                std::string(resource_name(found.simulation.bound_by)).c_str(),
                std::chrono::duration<double>(t1 - t0).count(),
                std::chrono::duration<double>(t2 - t1).count());
  }
}

}  // namespace
}  // namespace strata
