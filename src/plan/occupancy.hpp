#pragma once
// What a tier's memory holds over one steady step. Slabs are reserved once; this tells which of
// their bytes hold something that is still needed. Weights, masters and moments at home always are;
// everything else lives from its first write to its last use.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"

namespace strata {

// What bytes are, in the order in which pictures stack them.
enum class MemoryClass : std::uint8_t {
  weights,
  master,
  moments,
  gradients,
  activations,
  scratch,
  other,
};
inline constexpr int num_memory_classes = 7;
std::string_view memory_class_name(MemoryClass memory_class);
MemoryClass memory_class_of(const Program& program, const TileRef& what);

using ClassBytes = std::array<std::uint64_t, num_memory_classes>;
std::uint64_t total_of(const ClassBytes& bytes);

// Of each of `num_bins` equal parts of the step: what the tier holds when it holds the most.
std::vector<ClassBytes> occupancy(const Program& program, const Plan& plan,
                                  const Schedule& schedule, const Simulation& simulation, Tier tier,
                                  int num_bins);

}  // namespace strata
