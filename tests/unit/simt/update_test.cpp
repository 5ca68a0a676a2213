// The optimizer pass of kernels/cuda on the emulator gives the bits of the reference, and so of the
// CPU's: in every layout, for every cut into tiles, from any address, under any order of blocks.

#include <limits>

#include "contract/kernels/exact_harness.hpp"
#include "contract/kernels/update_tile.hpp"
#include "kernels/cuda/update_pieces.hpp"
#include "simt/emulated_kernels.hpp"

namespace strata::testing {
namespace {

class EmulatedUpdate : public ::testing::Test {
 protected:
  UpdateTile updated(Kernels& kernels, const UpdateTile& start, std::int64_t offset = 0) {
    UpdateTile tile = start.cut(0, start.count, offset);
    kernels.update(tile.args(), host_stream());
    return tile;
  }
  UpdateTile on_emulator(std::uint64_t seed, const UpdateTile& start, std::int64_t offset = 0) {
    return updated(*simt::make_emulated_kernels(seed), start, offset);
  }
  std::unique_ptr<Kernels> ref_ = make_ref_kernels();
};

TEST_F(EmulatedUpdate, HasTheBitsOfTheReferenceInEveryLayout) {
  std::uint64_t seed = 0;
  for (const UpdateLayout& layout : update_layouts()) {
    SCOPED_TRACE(layout.name());
    const UpdateTile start = UpdateTile::random(layout, 2311, 21);
    const std::string expected = updated(*ref_, start).bits();
    EXPECT_NE(start.bits(), expected);
    EXPECT_TRUE(on_emulator(seed++, start).bits() == expected);
  }
}

TEST_F(EmulatedUpdate, HasTheBitsOfTheReferenceForSmallTiles) {
  for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
    for (std::int64_t n : {1, 2, 7, 8, 9, 31, 64, 255, 256, 257}) {
      const UpdateTile start =
          UpdateTile::random({.gradient = DType::bf16, .moments = moments}, n, 22);
      EXPECT_TRUE(on_emulator(1, start).bits() == updated(*ref_, start).bits()) << n;
    }
  }
}

TEST_F(EmulatedUpdate, DoesNotFeelTheOrderOfBlocks) {
  const UpdateTile start = UpdateTile::random({.moments = DType::q8}, 9001, 23);
  const std::string expected = updated(*ref_, start).bits();
  for (std::uint64_t seed : {0u, 1u, 2u}) EXPECT_TRUE(on_emulator(seed, start).bits() == expected);
}

TEST_F(EmulatedUpdate, DoesNotFeelAddresses) {
  for (DType master : {DType::f32, DType::u16}) {
    for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
      const UpdateTile start = UpdateTile::random({.master = master, .moments = moments}, 1003, 24);
      const std::string expected = updated(*ref_, start).bits();
      for (std::int64_t offset : {1, 3, 7, 32})
        EXPECT_TRUE(on_emulator(2, start, offset).bits() == expected) << "offset " << offset;
    }
  }
}

TEST_F(EmulatedUpdate, DoesNotFeelTiles) {
  for (DType master : {DType::f32, DType::u16}) {
    for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
      const UpdateTile start = UpdateTile::random(
          {.gradient = DType::bf16, .master = master, .moments = moments}, 9001, 25);
      UpdateTile expected = updated(*ref_, start);
      expected.non_finite.set(0, 0);
      const std::int64_t unit = moments == DType::q8 ? q8_block_elements : 1;
      const auto cuda = simt::make_emulated_kernels(3);
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

TEST_F(EmulatedUpdate, CountsGradientsThatAreNotFinite) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (DType gradient : {DType::f32, DType::bf16}) {
    for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
      UpdateTile start = UpdateTile::random({.gradient = gradient, .moments = moments}, 5003, 28);
      start.gradient.set(0, inf);
      start.gradient.set(4097, -inf);
      start.gradient.set(5002, std::numeric_limits<double>::quiet_NaN());
      const UpdateTile expected = updated(*ref_, start);
      EXPECT_EQ(expected.non_finite.at(0), 3);
      EXPECT_TRUE(on_emulator(4, start).bits() == expected.bits());
    }
  }
}

TEST_F(EmulatedUpdate, CountsNothingWhereNobodyAsks) {
  UpdateTile tile = UpdateTile::random({}, 300, 29);
  tile.gradient.set(17, std::numeric_limits<double>::infinity());
  UpdateArgs args = tile.args();
  args.non_finite = {};
  simt::make_emulated_kernels(0)->update(args, host_stream());
  EXPECT_EQ(tile.non_finite.at(0), 0);
}

// --- Ranges of decay

std::vector<DecayRange> every_other_element(std::int64_t count) {
  std::vector<DecayRange> ranges;
  for (std::int64_t i = 0; i < count; i += 2) ranges.push_back({i, i + 1});
  return ranges;
}

TEST_F(EmulatedUpdate, TakesMoreRangesOfDecayThanALaunchHolds) {
  const std::vector<DecayRange> ranges = every_other_element(5000);
  for (DType moments : {DType::f32, DType::q8}) {
    const UpdateTile start = UpdateTile::random({.moments = moments}, 3001, 33);
    const UpdateTile expected = start.cut(0, 3001, 0), actual = start.cut(0, 3001, 0);
    UpdateArgs args = expected.args();
    args.decays = ranges;
    ref_->update(args, host_stream());
    args = actual.args();
    args.decays = ranges;
    simt::make_emulated_kernels(5)->update(args, host_stream());
    EXPECT_TRUE(actual.bits() == expected.bits());
  }
}

TEST(UpdatePieces, JoinRangesThatTouchAndCutThoseOfTheTile) {
  const std::vector<DecayRange> ranges = {{0, 90}, {95, 110}, {110, 120}, {150, 400}, {500, 600}};
  const UpdateTile tile({}, 100, 200);
  UpdateArgs args = tile.args();
  args.decays = ranges;
  const cuda::UpdatePiece piece = cuda::update_piece(args, 0);
  EXPECT_EQ(piece.end, 200);
  ASSERT_EQ(piece.decays.count, 2);
  EXPECT_EQ(piece.decays.ranges[0].begin, 100);
  EXPECT_EQ(piece.decays.ranges[0].end, 120);
  EXPECT_EQ(piece.decays.ranges[1].begin, 150);
  EXPECT_EQ(piece.decays.ranges[1].end, 300);
}

TEST(UpdatePieces, EndOnBlocksAndCoverTheTile) {
  const std::vector<DecayRange> ranges = every_other_element(5000);
  const UpdateTile tile({}, 3, 2999);
  UpdateArgs args = tile.args();
  args.decays = ranges;
  std::int64_t begin = 0;
  for (int pieces = 0; begin < 2999; ++pieces) {
    ASSERT_LT(pieces, 20);
    const cuda::UpdatePiece piece = cuda::update_piece(args, begin);
    EXPECT_EQ(piece.begin, begin);
    EXPECT_TRUE(piece.end == 2999 || (piece.end - begin) % cuda::update_block_elements == 0);
    begin = piece.end;
  }
  EXPECT_EQ(begin, 2999);
}

}  // namespace
}  // namespace strata::testing
