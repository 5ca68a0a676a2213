// The optimizer pass of kernels/cuda gives the bits of the reference and of the CPU's engine: in
// every layout, for every cut into tiles, from any address, under any order of blocks.

#include <limits>

#include "contract/cuda/kernels_under_test.hpp"
#include "contract/kernels/exact_harness.hpp"
#include "contract/kernels/update_tile.hpp"

namespace strata::testing {
namespace {

class CudaUpdate : public ::testing::Test {
 protected:
  UpdateTile updated(Kernels& kernels, const UpdateTile& start, std::int64_t offset = 0) {
    UpdateTile tile = start.cut(0, start.count, offset);
    kernels.update(tile.args(), host_stream());
    return tile;
  }
  UpdateTile on_cuda(std::uint64_t seed, const UpdateTile& start, std::int64_t offset = 0) {
    return updated(*make_kernels_under_test(seed), start, offset);
  }
  std::unique_ptr<Kernels> ref_ = make_ref_kernels(), cpu_ = make_cpu_kernels({.num_threads = 2});
};

TEST_F(CudaUpdate, HasTheBitsOfTheReferenceAndTheCpuInEveryLayout) {
  std::uint64_t seed = 0;
  for (const UpdateLayout& layout : update_layouts()) {
    SCOPED_TRACE(layout.name());
    const UpdateTile start = UpdateTile::random(layout, 2311, 21);
    const std::string expected = updated(*ref_, start).bits();
    EXPECT_NE(start.bits(), expected);
    EXPECT_TRUE(updated(*cpu_, start).bits() == expected);
    EXPECT_TRUE(on_cuda(seed++, start).bits() == expected);
  }
}

TEST_F(CudaUpdate, HasTheBitsOfTheCpuForLargeTiles) {
  const std::int64_t large = is_on_gpu() ? 16 << 20 : 33'000;
  const std::vector<std::pair<UpdateLayout, std::int64_t>> tiles = {
      {{.gradient = DType::bf16, .master = DType::u16, .moments = DType::q8}, large},
      {{.moments = DType::f32}, large / 8 + 3},
      {{.gradient = DType::bf16, .weight = DType::f32, .moments = DType::bf16}, large / 8 - 5}};
  for (const auto& [layout, count] : tiles) {
    SCOPED_TRACE(layout.name());
    const UpdateTile start = UpdateTile::random(layout, count, 34);
    EXPECT_TRUE(on_cuda(6, start).bits() == updated(*cpu_, start).bits());
  }
}

TEST_F(CudaUpdate, HasTheBitsOfTheReferenceForSmallTiles) {
  for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
    for (std::int64_t n : {1, 2, 7, 8, 9, 31, 64, 255, 256, 257}) {
      const UpdateTile start =
          UpdateTile::random({.gradient = DType::bf16, .moments = moments}, n, 22);
      EXPECT_TRUE(on_cuda(1, start).bits() == updated(*ref_, start).bits()) << n;
    }
  }
}

TEST_F(CudaUpdate, DoesNotFeelTheOrderOfBlocks) {
  const UpdateTile start = UpdateTile::random({.moments = DType::q8}, 9001, 23);
  const std::string expected = updated(*ref_, start).bits();
  for (std::uint64_t seed : {0u, 1u, 2u}) EXPECT_TRUE(on_cuda(seed, start).bits() == expected);
}

TEST_F(CudaUpdate, DoesNotFeelAddresses) {
  for (DType master : {DType::f32, DType::u16}) {
    for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
      const UpdateTile start = UpdateTile::random({.master = master, .moments = moments}, 1003, 24);
      const std::string expected = updated(*ref_, start).bits();
      for (std::int64_t offset : {1, 3, 7, 32})
        EXPECT_TRUE(on_cuda(2, start, offset).bits() == expected) << "offset " << offset;
    }
  }
}

TEST_F(CudaUpdate, DoesNotFeelTiles) {
  for (DType master : {DType::f32, DType::u16}) {
    for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
      const UpdateTile start = UpdateTile::random(
          {.gradient = DType::bf16, .master = master, .moments = moments}, 9001, 25);
      UpdateTile expected = updated(*ref_, start);
      expected.non_finite.set(0, 0);
      const std::int64_t unit = moments == DType::q8 ? q8_block_elements : 1;
      const auto cuda = make_kernels_under_test(3);
      PhiloxStream random(31, 0);
      for (std::int64_t begin = 0, count = 0; begin < start.count; begin += count) {
        count = static_cast<std::int64_t>(1 + random.next_below(2000 / unit + 1)) * unit;
        count = std::min(count, start.count - begin);
        UpdateTile tile = start.cut(begin, count, 0);
        cuda->update(tile.args(), host_stream());
        EXPECT_TRUE(tile.bits() == expected.cut(begin, count, 0).bits()) << "tile at " << begin;
      }
    }
  }
}

TEST_F(CudaUpdate, CountsGradientsThatAreNotFinite) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (DType gradient : {DType::f32, DType::bf16}) {
    for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
      UpdateTile start = UpdateTile::random({.gradient = gradient, .moments = moments}, 5003, 28);
      start.gradient.set(0, inf);
      start.gradient.set(4097, -inf);
      start.gradient.set(5002, std::numeric_limits<double>::quiet_NaN());
      const UpdateTile expected = updated(*ref_, start);
      EXPECT_EQ(expected.non_finite.at(0), 3);
      EXPECT_TRUE(on_cuda(4, start).bits() == expected.bits());
    }
  }
}

TEST_F(CudaUpdate, CountsNothingWhereNobodyAsks) {
  UpdateTile tile = UpdateTile::random({}, 300, 29);
  tile.gradient.set(17, std::numeric_limits<double>::infinity());
  UpdateArgs args = tile.args();
  args.non_finite = {};
  make_kernels_under_test(0)->update(args, host_stream());
  EXPECT_EQ(tile.non_finite.at(0), 0);
}

// --- Ranges of decay

TEST_F(CudaUpdate, TakesMoreRangesOfDecayThanALaunchHolds) {
  const std::vector<DecayRange> ranges = every_other_element(5000);
  for (DType moments : {DType::f32, DType::q8}) {
    const UpdateTile start = UpdateTile::random({.moments = moments}, 3001, 33);
    const UpdateTile expected = start.cut(0, 3001, 0), actual = start.cut(0, 3001, 0);
    UpdateArgs args = expected.args();
    args.decays = ranges;
    ref_->update(args, host_stream());
    args = actual.args();
    args.decays = ranges;
    make_kernels_under_test(5)->update(args, host_stream());
    EXPECT_TRUE(actual.bits() == expected.bits());
  }
}

}  // namespace
}  // namespace strata::testing
