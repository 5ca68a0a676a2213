#pragma once
// An optimizer pass on a device takes its ranges of decay as a kernel's argument, so a launch works
// on a piece of the tile that meets no more of them than that holds. Plain host code.

#include <algorithm>
#include <cstdint>
#include <span>

#include "strata/kernels/update.hpp"

namespace strata::cuda {

// A warp updates so many elements together: a block of 8-bit moments.
inline constexpr std::int64_t update_block_elements = q8_block_elements;

// Sorted, disjoint and apart, in elements of the shard. No block can meet more.
struct DecayTable {
  static constexpr int ranges_max = update_block_elements / 2;
  int count = 0;
  DecayRange ranges[ranges_max];

  // The first range that does not end before an element.
  constexpr int first_at(std::int64_t element) const {
    int low = 0, high = count;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (ranges[middle].end <= element) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

// Asked for elements in rising order.
class DecayCursor {
 public:
  constexpr DecayCursor(const DecayTable& table, std::int64_t element)
      : table_(table), at_(table.first_at(element)) {}
  constexpr bool decays(std::int64_t element) {
    while (at_ < table_.count && table_.ranges[at_].end <= element) ++at_;
    return at_ < table_.count && table_.ranges[at_].begin <= element;
  }

 private:
  const DecayTable& table_;
  int at_;
};

struct UpdatePiece {
  std::int64_t begin = 0, end = 0;  // elements of the tile
  DecayTable decays;
};

// The piece of `args`' tile that begins at an element, a multiple of whole blocks unless it is the
// last.
inline UpdatePiece update_piece(const UpdateArgs& args, std::int64_t begin) {
  UpdatePiece piece{begin, args.master.count(), {}};
  DecayTable& table = piece.decays;
  const std::int64_t first = args.first + begin, last = args.first + piece.end;
  for (auto at = std::ranges::upper_bound(args.decays, first, {}, &DecayRange::end);
       at != args.decays.end() && at->begin < last; ++at) {
    const DecayRange range{std::max(at->begin, first), std::min(at->end, last)};
    if (range.begin >= range.end) continue;
    if (table.count > 0 && table.ranges[table.count - 1].end == range.begin) {
      table.ranges[table.count - 1].end = range.end;
    } else if (table.count < DecayTable::ranges_max) {
      table.ranges[table.count++] = range;
    } else {
      const std::int64_t blocks = (range.begin - first) / update_block_elements;
      piece.end = begin + blocks * update_block_elements;
      break;
    }
  }
  ensure(piece.end > begin || args.master.count() == begin);
  return piece;
}

}  // namespace strata::cuda
