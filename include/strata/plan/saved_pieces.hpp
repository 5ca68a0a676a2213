#pragma once
// What saving state takes, whether a plan does it in the background or a run beside its steps.

#include <cstdint>

namespace strata {

// Pieces of one tile each that are on their way to the drive at once. A drive that was measured
// took 0.75 of its rate from four of 16 MiB, 0.83 from eight (bench/save_rate).
inline constexpr std::uint64_t saved_pieces_in_flight = 8;

}  // namespace strata
