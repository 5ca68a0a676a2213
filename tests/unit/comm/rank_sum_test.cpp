// Sums over ranks have the bits of the scalar oracle on every SIMD target that this machine runs,
// from any address, of any size, in whatever floating-point mode the caller is.

#include "src/comm/rank_sum.hpp"

#include <cfenv>

#include "src/comm/bulk_copy.hpp"
#include "contract/comm/rank_values.hpp"
#include "support/simd_targets.hpp"

namespace strata::testing {
namespace {

template <typename Check>
void on_every_target(const Check& check) {
  for (const std::int64_t target : targets()) {
    const ScopedTarget pinned(target);
    SCOPED_TRACE(hwy::TargetName(target));
    check();
  }
}

// The values of every rank, `offset` elements into its memory.
template <typename T>
class Terms {
 public:
  Terms(int world, std::size_t count, ValueKind kind, std::size_t offset = 0)
      : count_(count), offset_(offset) {
    for (int rank = 0; rank < world; ++rank)
      memory_.push_back(placed(values_of<T>(rank, count, 50, kind)));
    expected_ = sum_in_rank_order<T>(world, count, 50, kind);
  }

  void expect_sum() {
    std::vector<T> result = placed(std::vector<T>(count_));
    const T before = result[result.size() - 1];
    sum_ranks(sources(), dtype_of<T>, count(), at(result));
    EXPECT_TRUE(is_expected(result));
    EXPECT_TRUE(same_bits(&result.back(), &before, 1)) << "behind the end";
  }

  void expect_sum_over_source(int rank) {
    const std::vector<T> saved = memory_[static_cast<std::size_t>(rank)];
    std::vector<T>& result = memory_[static_cast<std::size_t>(rank)];
    sum_ranks(sources(), dtype_of<T>, count(), at(result));
    EXPECT_TRUE(is_expected(result)) << "over rank " << rank;
    result = saved;
  }

 private:
  // One more than is used, which must stay as it is.
  std::vector<T> placed(const std::vector<T>& values) const {
    std::vector<T> memory(offset_ + values.size() + 1, narrowed<T>(77));
    std::ranges::copy(values, memory.begin() + static_cast<std::ptrdiff_t>(offset_));
    return memory;
  }
  std::byte* at(std::vector<T>& memory) const {
    return reinterpret_cast<std::byte*>(memory.data() + offset_);
  }
  std::int64_t count() const { return static_cast<std::int64_t>(count_); }
  std::vector<const std::byte*> sources() {
    std::vector<const std::byte*> all;
    for (std::vector<T>& memory : memory_) all.push_back(at(memory));
    return all;
  }
  ::testing::AssertionResult is_expected(const std::vector<T>& result) const {
    return same_bits(result.data() + offset_, expected_.data(), count_);
  }

  std::size_t count_, offset_;
  std::vector<std::vector<T>> memory_;
  std::vector<T> expected_;
};

template <typename T>
class RankSum : public ::testing::Test {};
using Elements = ::testing::Types<float, double, bfloat16>;
TYPED_TEST_SUITE(RankSum, Elements);

TYPED_TEST(RankSum, IsTheOraclesInEverySize) {
  for (const int world : {1, 2, 3, 8}) {
    for (const std::size_t count : {0u, 1u, 3u, 7u, 8u, 31u, 64u, 65u, 129u, 1003u}) {
      Terms<TypeParam> terms(world, count, ValueKind::wild);
      on_every_target([&] { terms.expect_sum(); });
    }
  }
}

TYPED_TEST(RankSum, IsTheOraclesForWhatIsNotFiniteOrNotNormal) {
  for (const int world : {2, 5}) {
    Terms<TypeParam> terms(world, 4099, ValueKind::special);
    on_every_target([&] { terms.expect_sum(); });
  }
}

TYPED_TEST(RankSum, DoesNotFeelAddresses) {
  for (const std::size_t offset : {1u, 3u, 8u, 13u}) {
    Terms<TypeParam> terms(3, 517, ValueKind::special, offset);
    on_every_target([&] { terms.expect_sum(); });
  }
}

TYPED_TEST(RankSum, MayReplaceItsSources) {
  Terms<TypeParam> terms(3, 1003, ValueKind::wild, 5);
  on_every_target([&] {
    for (int rank = 0; rank < 3; ++rank) terms.expect_sum_over_source(rank);
  });
}

TYPED_TEST(RankSum, IsTheOraclesPastTheCaches) {
  for (const std::size_t offset : {0u, 3u}) {
    Terms<TypeParam> terms(2, bulk_bytes / sizeof(TypeParam) + 1001, ValueKind::special, offset);
    on_every_target([&] { terms.expect_sum(); });
    terms.expect_sum_over_source(1);
  }
}

TYPED_TEST(RankSum, DoesNotFeelTheCallersRounding) {
  Terms<TypeParam> terms(3, 1003, ValueKind::wild);
  on_every_target([&] {
    std::fesetround(FE_UPWARD);
    terms.expect_sum();
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    std::fesetround(FE_TONEAREST);
  });
}

TEST(BulkCopy, BringsEveryByteAndNoMore) {
  std::vector<std::uint8_t> source = values_of<std::uint8_t>(0, bulk_bytes + 5000, 51), target;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4097}, bulk_bytes - 1,
                                  bulk_bytes, bulk_bytes + 1, bulk_bytes + 4321}) {
    for (const std::size_t offset : {0u, 1u, 77u}) {
      on_every_target([&] {
        target.assign(source.size(), 0);
        std::vector<std::uint8_t> expected = target;
        std::copy_n(source.begin() + 13, bytes, expected.begin() + std::ptrdiff_t(offset));
        bulk_copy(reinterpret_cast<std::byte*>(target.data() + offset),
                  reinterpret_cast<const std::byte*>(source.data() + 13), bytes);
        EXPECT_TRUE(target == expected) << bytes << " bytes to " << offset;
      });
    }
  }
}

}  // namespace
}  // namespace strata::testing
