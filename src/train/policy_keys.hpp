#pragma once
// Which key of a config places which role and counts which slots.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "strata/plan/search.hpp"
#include "strata/train/run_config.hpp"

namespace strata {

struct RoleKey {
  Role role;
  const char* key;
  TierFractions OffloadConfig::*field;
};
inline constexpr std::array role_keys = {
    RoleKey{Role::weight, "offload.weights", &OffloadConfig::weights},
    RoleKey{Role::gradient, "offload.gradients", &OffloadConfig::gradients},
    RoleKey{Role::master, "offload.master", &OffloadConfig::master},
    RoleKey{Role::moment1, "offload.moment1", &OffloadConfig::moment1},
    RoleKey{Role::moment2, "offload.moment2", &OffloadConfig::moment2},
    RoleKey{Role::activation, "offload.activations", &OffloadConfig::activations},
    RoleKey{Role::saved, "offload.saved", &OffloadConfig::saved}};

struct SlotKey {
  SlotCount slots;
  const char* key;
  int OffloadConfig::*field;
};
inline constexpr std::array slot_keys = {
    SlotKey{&Policy::weight_slots, "offload.weight_slots", &OffloadConfig::weight_slots},
    SlotKey{&Policy::gradient_slots, "offload.gradient_slots", &OffloadConfig::gradient_slots},
    SlotKey{&Policy::activation_slots, "offload.activation_slots",
            &OffloadConfig::activation_slots},
    SlotKey{&Policy::state_slots, "offload.state_slots", &OffloadConfig::state_slots},
    SlotKey{&Policy::staging_slots, "offload.staging_slots", &OffloadConfig::staging_slots}};

// The value of offload.update_order.
std::string_view update_order_key(UpdateOrder order);
// "{gpu: 0.25, cpu: 0.75, nvme: 0}": read back, it is the same fractions.
std::string fractions_value(const TierFractions& fractions);
// "[1, 2.5]".
std::string weights_value(const std::vector<double>& weights);

}  // namespace strata
