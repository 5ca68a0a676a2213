#pragma once
// A RowPermutation is the order of `size` rows in each epoch: a bijection computed position by
// position, so seeking costs nothing and no table of the order exists. A value; any thread may call
// it.

#include <cstdint>

namespace strata {

class RowPermutation {
 public:
  RowPermutation(std::uint64_t size, std::uint64_t seed);

  // The row at `position` (< size) of `epoch`.
  std::uint64_t at(std::uint64_t epoch, std::uint64_t position) const;

 private:
  std::uint64_t shuffle_once(std::uint64_t epoch, std::uint64_t position) const;
  std::uint64_t noise(std::uint64_t epoch, std::uint32_t round, std::uint64_t half) const;

  // Constant after construction.
  std::uint64_t size_;
  std::uint64_t key_;
  // The cipher works on pairs below (columns, rows), whose product is just above `size`.
  std::uint64_t columns_, rows_;
};

}  // namespace strata
