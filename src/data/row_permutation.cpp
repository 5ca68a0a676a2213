#include "data/row_permutation.hpp"

#include <cmath>

#include "strata/core/error.hpp"
#include "strata/core/philox.hpp"

namespace strata {
namespace {

constexpr std::uint32_t num_rounds = 8;
// Keeps the order apart from other uses of the run's seed.
constexpr std::uint64_t key_tag = 0x726f776f72646572;  // "roworder"

std::uint64_t square_root_up(std::uint64_t value) {
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(value)));
  while (root * root < value) ++root;
  return root;
}

}  // namespace

RowPermutation::RowPermutation(std::uint64_t size, std::uint64_t seed)
    : size_(size), key_(seed ^ key_tag), columns_(square_root_up(size)) {
  ensure(size > 0 && size < (1ull << 62));
  rows_ = (size + columns_ - 1) / columns_;
}

std::uint64_t RowPermutation::noise(std::uint64_t epoch, std::uint32_t round,
                                    std::uint64_t half) const {
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const auto random =
      philox4x32({low(half), round, low(epoch), low(epoch >> 32)}, {low(key_), low(key_ >> 32)});
  return std::uint64_t{random[0]} << 32 | random[1];
}

// A Feistel network over a rectangle: each round adds, modulo one side, noise of the other side.
std::uint64_t RowPermutation::shuffle_once(std::uint64_t epoch, std::uint64_t position) const {
  std::uint64_t column = position % columns_, row = position / columns_;
  for (std::uint32_t round = 0; round < num_rounds; round += 2) {
    column = (column + noise(epoch, round, row) % columns_) % columns_;
    row = (row + noise(epoch, round + 1, column) % rows_) % rows_;
  }
  return row * columns_ + column;
}

// Walks the cycle until it is back inside: a bijection of the rectangle becomes one of [0, size).
std::uint64_t RowPermutation::at(std::uint64_t epoch, std::uint64_t position) const {
  ensure(position < size_);
  do {
    position = shuffle_once(epoch, position);
  } while (position >= size_);
  return position;
}

}  // namespace strata
