#pragma once
// The passes of STREAM over three arrays of doubles, and reading, filling and changing one in
// place. Thread contract: any thread.

#include <array>
#include <cstdint>
#include <string_view>

namespace strata {

enum class StreamPass : std::uint8_t { read, fill, copy, scale, add, triad, change };

enum class StreamStores : std::uint8_t {
  normal,
  streamed,  // past the caches, so that the lines they fill are not fetched first
};

struct StreamArrays {
  double* a;
  double* b;
  double* c;
};

struct StreamFacts {
  StreamPass pass;
  std::string_view name;
  int reads, writes;  // elements of arrays, per element of the pass
  bool allocates;     // writes lines it has not read: normal stores fetch them first
};
inline constexpr std::array stream_facts = {
    StreamFacts{StreamPass::read, "read", 1, 0, false},
    StreamFacts{StreamPass::fill, "fill", 0, 1, true},      // a = 3
    StreamFacts{StreamPass::copy, "copy", 1, 1, true},      // c = a
    StreamFacts{StreamPass::scale, "scale", 1, 1, true},    // b = 3 c
    StreamFacts{StreamPass::add, "add", 2, 1, true},        // c = a + b
    StreamFacts{StreamPass::triad, "triad", 2, 1, true},    // a = b + 3 c
    StreamFacts{StreamPass::change, "change", 1, 1, false}  // a = -a
};

// Elements [begin, end) in whole lines of 8; arrays begin on a cache line.
void run_stream_pass(StreamPass pass, StreamStores stores, const StreamArrays& arrays,
                     std::int64_t begin, std::int64_t end);

}  // namespace strata
