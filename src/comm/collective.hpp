#pragma once
// The kinds of collectives, and how messages tell of one, whoever carries it. Values and pure
// functions; no thread contract.

#include <cstdint>
#include <string>
#include <string_view>

#include "strata/core/dtype.hpp"

namespace strata {

enum class Collective : std::uint8_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  broadcast,
  send,
  barrier
};
std::string_view collective_name(Collective collective);

// "send of 4 f32 from rank 0 to rank 1"; the ranks count for broadcast and send alone.
std::string describe(Collective kind, DType dtype, std::int64_t count, int from, int to);

}  // namespace strata
