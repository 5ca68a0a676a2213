#pragma once
// Bytes of model state that one rank holds, by role: as a formula, as planned, and as touched.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/rank_training.hpp"

namespace strata::testing {

// What a table has a column of.
enum class StatePart : std::uint8_t { weight, gradient, master, moments };
inline constexpr std::array state_parts = {StatePart::weight, StatePart::gradient,
                                           StatePart::master, StatePart::moments};
std::string_view state_part_name(StatePart part);

// By StatePart.
struct StateBytes {
  std::array<std::uint64_t, state_parts.size()> of{};
  std::uint64_t& operator[](StatePart part) { return of[static_cast<std::size_t>(part)]; }
  std::uint64_t operator[](StatePart part) const { return of[static_cast<std::size_t>(part)]; }
  std::uint64_t total() const;
  bool operator==(const StateBytes&) const = default;
};

// The first stage that slices a part.
int slicing_stage(StatePart part);

// From nothing but the sizes of the model's blocks: each block's elements, divided by the ranks,
// rounded up to whole chunks of the norm, are a slice; a rank holds one, or where the stage does
// not slice the part, all. One rank holds the block as it is. Homes are aligned for direct I/O.
StateBytes formula_bytes(const PlannedRun& run);
// The homes of a plan's table, on all tiers.
StateBytes planned_bytes(const Plan& plan);

// A rank's state after training: what of its homes in memory (gpu, cpu) is touched, and their size.
struct MeasuredState {
  StateBytes touched, homes;
};
struct MeasuredRanks {
  RanksOutcome outcome;
  std::vector<MeasuredState> states;  // by rank
};
MeasuredRanks measure_ranks(const RunConfig& config);

}  // namespace strata::testing
