// How a tile that meets many ranges of decay is cut into launches.

#include "kernels/cuda/update_pieces.hpp"

#include "contract/kernels/update_tile.hpp"

namespace strata::testing {
namespace {

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
