#include "src/data/first_fit.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "strata/core/philox.hpp"

namespace strata {
namespace {

// The plain rule: look through the bins from the first.
std::uint64_t place_plainly(std::vector<std::uint64_t>& room, std::uint64_t capacity,
                            std::uint64_t length) {
  std::size_t bin = 0;
  while (bin < room.size() && room[bin] < length) ++bin;
  if (bin == room.size()) room.push_back(capacity);
  room[bin] -= length;
  return bin;
}

TEST(FirstFit, PlacesAsLookingThroughAllBinsWould) {
  for (std::uint64_t capacity : {1, 2, 7, 64, 1000}) {
    FirstFit fit(capacity);
    std::vector<std::uint64_t> room;
    PhiloxStream random(3, capacity);
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t length = 1 + random.next_below(capacity);
      ASSERT_EQ(fit.place(length), place_plainly(room, capacity, length)) << i;
    }
    EXPECT_EQ(fit.num_bins(), room.size());
  }
}

}  // namespace
}  // namespace strata
