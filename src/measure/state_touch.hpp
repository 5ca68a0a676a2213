#pragma once
// The optimizer pass without its arithmetic: walks the same arrays in the same order and touches
// the same bytes, so that its time is what memory allows. Thread contract: any thread.

#include "strata/kernels/update.hpp"

namespace strata {

// Elements [begin, end) of the tile, rounded down to whole steps of 64.
void touch_state(const UpdateArgs& args, std::int64_t begin, std::int64_t end);

}  // namespace strata
