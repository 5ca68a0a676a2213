// The device's sum over ranks has the bits of the host's: the oracle is the one that the host's sum
// is held to, from any address, under any order of blocks and threads.

#include "kernels/cuda/rank_sum.cuh"

#include "contract/comm/rank_values.hpp"
#include "simt/emulator.hpp"

namespace strata::testing {
namespace {

constexpr int worlds[] = {2, 3, 4, 5, 8, 9, 13};
constexpr std::size_t counts[] = {1, 7, 8, 9, 31, 1001, 2049};

// The values of every rank on the 16 bytes that a whole group needs, and `offset` elements on.
template <typename T>
class RankMemory {
 public:
  RankMemory(int world, std::size_t count, ValueKind kind, std::size_t offset)
      : count_(count), offset_(offset) {
    for (int rank = 0; rank < world; ++rank)
      memory_.push_back(placed(values_of<T>(rank, count, 60, kind)));
  }

  std::vector<TensorView> views() {
    std::vector<TensorView> all;
    for (auto& memory : memory_) all.push_back(view(memory));
    return all;
  }
  TensorView view(std::vector<T>& memory) const {
    return {start(memory), dtype_of<T>, {static_cast<std::int64_t>(count_)}};
  }
  std::vector<T> placed(const std::vector<T>& values) const {
    std::vector<T> memory(offset_ + values.size() + 16, narrowed<T>(77));
    std::ranges::copy(values, start(memory));
    return memory;
  }
  T* start(std::vector<T>& memory) const {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(memory.data()) % 16 / sizeof(T);
    return memory.data() + (past == 0 ? 0 : 16 / sizeof(T) - past) + offset_;
  }

 private:
  std::size_t count_, offset_;
  std::vector<std::vector<T>> memory_;
};

template <typename T>
void expect_sum(int world, std::size_t count, ValueKind kind, std::uint64_t seed) {
  RankMemory<T> ranks(world, count, kind, seed % 3);
  std::vector<T> result = ranks.placed(std::vector<T>(count));
  simt::Emulator emulator(seed);
  cuda::launch_rank_sum(emulator, ranks.views(), ranks.view(result));
  const std::vector<T> expected = sum_in_rank_order<T>(world, count, 60, kind);
  EXPECT_TRUE(same_bits(ranks.start(result), expected.data(), count))
      << world << " ranks, seed " << seed;
}

template <typename T>
class EmulatedRankSum : public ::testing::Test {};
using Elements = ::testing::Types<float, double, bfloat16>;
TYPED_TEST_SUITE(EmulatedRankSum, Elements);

TYPED_TEST(EmulatedRankSum, HasTheBitsOfTheHosts) {
  for (const int world : worlds)
    for (const std::size_t count : counts)
      for (const std::uint64_t seed : {0u, 1u, 2u})
        expect_sum<TypeParam>(world, count, ValueKind::wild, seed);
}

TYPED_TEST(EmulatedRankSum, AddsWhatIsNotFiniteOrNotNormal) {
  for (const int world : {2, 3, 8})
    for (const std::uint64_t seed : {3u, 4u})
      expect_sum<TypeParam>(world, 1001, ValueKind::special, seed);
}

TYPED_TEST(EmulatedRankSum, GoesOverATerm) {
  for (const std::size_t over : {0u, 2u, 4u}) {
    RankMemory<TypeParam> ranks(5, 1001, ValueKind::special, over % 2);
    const std::vector<TensorView> views = ranks.views();
    simt::Emulator emulator(over);
    cuda::launch_rank_sum(emulator, views, views[over]);
    const auto expected = sum_in_rank_order<TypeParam>(5, 1001, 60, ValueKind::special);
    EXPECT_TRUE(same_bits(views[over].template as<TypeParam>(), expected.data(), 1001));
  }
}

TYPED_TEST(EmulatedRankSum, KeepsTheSignOfNegativeZeros) {
  std::vector<TypeParam> a(3, narrowed<TypeParam>(-0.0)), b = a, total(3);
  simt::Emulator emulator(1);
  cuda::launch_rank_sum(emulator, std::vector{view_of(a), view_of(b)}, view_of(total));
  EXPECT_TRUE(same_bits(total, a));
}

TYPED_TEST(EmulatedRankSum, TakesAsManyRanksAsItSays) {
  expect_sum<TypeParam>(cuda::rank_terms_max, 19, ValueKind::wild, 5);
}

}  // namespace
}  // namespace strata::testing
