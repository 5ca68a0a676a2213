#include "data/first_fit.hpp"

#include <algorithm>

#include "strata/core/error.hpp"

namespace strata {

FirstFit::FirstFit(std::uint64_t capacity) : capacity_(capacity), room_(2, capacity) {}

std::uint64_t FirstFit::place(std::uint64_t length) {
  ensure(length > 0 && length <= capacity_);
  if (room_[1] < length) grow();
  std::uint64_t node = 1;
  while (node < leaves_) {
    node *= 2;
    if (room_[node] < length) ++node;
  }
  room_[node] -= length;
  update_above(node);
  const std::uint64_t bin = node - leaves_;
  num_bins_ = std::max(num_bins_, bin + 1);
  return bin;
}

void FirstFit::update_above(std::uint64_t node) {
  for (node /= 2; node > 0; node /= 2) room_[node] = std::max(room_[2 * node], room_[2 * node + 1]);
}

void FirstFit::grow() {
  std::vector<std::uint64_t> larger(4 * leaves_, capacity_);
  std::copy(room_.begin() + static_cast<std::ptrdiff_t>(leaves_), room_.end(),
            larger.begin() + static_cast<std::ptrdiff_t>(2 * leaves_));
  leaves_ *= 2;
  room_ = std::move(larger);
  for (std::uint64_t node = leaves_ - 1; node > 0; --node) {
    room_[node] = std::max(room_[2 * node], room_[2 * node + 1]);
  }
}

}  // namespace strata
