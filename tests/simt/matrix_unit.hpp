#pragma once
// The fragments of ldmatrix and mma.m16n8k16 in the PTX ISA's layouts. With group = lane / 4 and
// pair = lane % 4:
//   a (16 x 16): register 0 holds (group, 2 pair) and its right neighbour, 1 (group + 8, 2 pair),
//                2 (group, 2 pair + 8), 3 (group + 8, 2 pair + 8)
//   b (16 x 8):  register 0 holds (2 pair, group) and the one below, 1 (2 pair + 8, group)
//   c (16 x 8):  0 and 1 are (group, 2 pair) and its right neighbour, 2 and 3 the same of group + 8

#include <array>
#include <cstdint>

#include "strata/core/dtype.hpp"

namespace strata::simt {

struct MmaOperands {
  std::array<std::uint32_t, 4> a;
  std::array<std::uint32_t, 2> b;
};

inline bfloat16 half_of(std::uint32_t word, int high) {
  return {static_cast<std::uint16_t>(high != 0 ? word >> 16 : word & 0xffffu)};
}

// Element (row, k) of the warp's a, whose registers each lane brought.
template <class Lanes>
float element_a(const Lanes& lanes, int row, int k) {
  const int lane = row % 8 * 4 + k % 8 / 2;
  const auto word = static_cast<std::size_t>(row / 8 + 2 * (k / 8));
  return to_float(half_of(lanes(lane).a[word], k % 2));
}

// Element (k, column) of b.
template <class Lanes>
float element_b(const Lanes& lanes, int k, int column) {
  const int lane = column * 4 + k % 8 / 2;
  return to_float(half_of(lanes(lane).b[static_cast<std::size_t>(k / 8)], k % 2));
}

// c(row, column) + the sum over k, rounded once: within the rounding of the hardware, which does
// not say in which order it adds.
template <class Lanes>
float product(const Lanes& lanes, int row, int column, float c) {
  double total = static_cast<double>(c);
  for (int k = 0; k < 16; ++k) {
    total += static_cast<double>(element_a(lanes, row, k)) *
             static_cast<double>(element_b(lanes, k, column));
  }
  return static_cast<float>(total);
}

}  // namespace strata::simt
