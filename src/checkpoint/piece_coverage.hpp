#pragma once
// Whether pieces cover vectors exactly. Thread contract: pure functions.

#include <span>
#include <vector>

#include "strata/checkpoint/state_checkpoint.hpp"

namespace strata {

// By vector, then by element.
std::vector<StatePiece> sorted_pieces(std::vector<StatePiece> pieces);

// `pieces`: sorted. Throws Error naming the vector and the elements that are in no piece or in two.
void check_coverage(std::span<const StateVector> vectors, std::span<const StatePiece> pieces);

}  // namespace strata
