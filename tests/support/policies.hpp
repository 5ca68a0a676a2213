#pragma once
// Placements for tests.

#include <cstdint>
#include <vector>

#include "strata/core/philox.hpp"
#include "strata/plan/plan.hpp"

namespace strata::testing {

// A random placement and slot counts; every tier is used by some role of some seed.
inline Policy random_policy(std::uint64_t seed) {
  PhiloxStream random(seed, 77);
  Policy policy;
  for (TierFractions& f : policy.fractions) {
    const auto device = static_cast<double>(random.next_below(5)) / 4;
    const double nvme = (1 - device) * static_cast<double>(random.next_below(5)) / 4;
    f = {device, 1 - device - nvme, nvme};
  }
  policy.weight_slots = 1 + static_cast<int>(random.next_below(3));
  policy.gradient_slots = 1 + static_cast<int>(random.next_below(3));
  policy.activation_slots = 2 + static_cast<int>(random.next_below(3));
  policy.state_slots = 1 + static_cast<int>(random.next_below(4));
  policy.staging_slots = 1 + static_cast<int>(random.next_below(4));
  return policy;
}

// A random placement with one of the update orders, and none, some or all updates off the device
// passing through it.
inline Policy random_schedule(std::uint64_t seed) {
  Policy policy = random_policy(seed);
  PhiloxStream random(seed, 78);
  policy.update_order = static_cast<UpdateOrder>(random.next_below(3));
  policy.streamed_updates = static_cast<double>(random.next_below(5)) / 4;
  return policy;
}

// A random schedule, and the same one saved from.
inline Policy random_saving(std::uint64_t seed) {
  Policy policy = random_schedule(seed);
  policy.background_saves = true;
  return policy;
}

// A random schedule whose every step is committed; every other one is saved from too.
inline Policy random_versioned(std::uint64_t seed) {
  Policy policy = random_schedule(seed);
  for (const Role role : {Role::master, Role::moment1, Role::moment2})
    policy.fractions[static_cast<std::size_t>(role)] = {0, 0, 1};
  policy.update_order = seed / 3 % 2 == 0 ? UpdateOrder::deferred : UpdateOrder::after_backward;
  policy.versioned_state = true;
  policy.background_saves = seed % 2 == 0;
  return policy;
}

inline Policy all_on(Tier tier) {
  Policy policy;
  for (TierFractions& f : policy.fractions)
    f = {tier == Tier::device ? 1.0 : 0.0, tier == Tier::host ? 1.0 : 0.0,
         tier == Tier::nvme ? 1.0 : 0.0};
  return policy;
}

inline TierLimits roomy_limits(int drives = 2) {
  TierLimits limits;
  for (int i = 0; i < drives; ++i) limits.drive_bytes.push_back(1ull << 40);
  return limits;
}

}  // namespace strata::testing
