#pragma once
// The optimizer pass without its arithmetic: walks the same arrays in the same chunks and order and
// touches the same bytes, so that its time is what memory allows.

#include "strata/kernels/update.hpp"

namespace strata::bench {

// Elements [begin, end) of the tile, rounded down to whole steps of 64.
void touch_state(const UpdateArgs& args, std::int64_t begin, std::int64_t end);

}  // namespace strata::bench
