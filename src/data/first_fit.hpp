#pragma once
// FirstFit puts lengths, in order, into bins of equal capacity: each into the first bin with room,
// in O(log bins).

#include <cstdint>
#include <vector>

namespace strata {

class FirstFit {
 public:
  explicit FirstFit(std::uint64_t capacity);

  // The bin that `length` (1..capacity) goes into.
  std::uint64_t place(std::uint64_t length);
  std::uint64_t num_bins() const { return num_bins_; }

 private:
  void grow();
  void update_above(std::uint64_t node);

  std::uint64_t capacity_;
  std::uint64_t num_bins_ = 0;
  std::uint64_t leaves_ = 1;
  // A tournament tree: node n has the most room below it, bins are the leaves. Unopened bins are
  // whole, so the leftmost leaf with room is the right one whether open or not.
  std::vector<std::uint64_t> room_;
};

}  // namespace strata
