#pragma once
// A CallHeader tells the other ranks what a rank calls, before any bytes of it flow: they must all
// call the same, so a mismatch is found by every rank, and no message is taken for another's. A
// value; no thread contract.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "comm/collective.hpp"
#include "strata/core/dtype.hpp"

namespace strata {

// Sent as it lies in memory: all processes run the same build, on one kind of machine.
struct CallHeader {
  std::uint64_t sequence = 0;  // of the call on its line
  std::int64_t count = 0;
  std::int32_t root = 0, target = 0;  // of broadcast and send
  Collective kind = Collective::barrier;
  DType dtype = DType::f32;
  bool is_leaving = false;  // no call: the rank will never call again
  std::uint8_t unused[5] = {};
  bool operator==(const CallHeader&) const = default;
};

std::string describe(const CallHeader& call);  // "send of 4 f32 from rank 0 to rank 1"

// "rank 2 called barrier where rank 0 called ..." of the first rank that differs from rank 0.
std::optional<std::string> mismatch(std::span<const CallHeader> calls);

}  // namespace strata
