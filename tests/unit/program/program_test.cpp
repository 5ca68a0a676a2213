#include "strata/program/program.hpp"

#include <gtest/gtest.h>

#include "strata/core/error.hpp"

namespace strata {
namespace {

Shard shard_of(Role role, std::int64_t count, DType dtype = DType::f32) {
  Shard shard;
  shard.role = role;
  shard.block = 0;
  shard.dtype = dtype;
  shard.count = count;
  shard.name = std::string(role_name(role)) + "/block";
  return shard;
}

// One segment that reads a weight, produces an activation and accumulates a gradient.
Program small_program() {
  Program program;
  program.tile_elements = 4096;
  program.blocks = {"block"};
  Segment segment;
  segment.name = "the segment";
  segment.uses = {{program.add(shard_of(Role::weight, 10000, DType::bf16)), Access::read},
                  {program.add(shard_of(Role::activation, 10000)), Access::produce},
                  {program.add(shard_of(Role::gradient, 10000)), Access::accumulate}};
  program.sequences.push_back({"train", {program.add(std::move(segment))}});
  return program;
}

void expect_refused(const Program& program, const std::string& part) {
  try {
    validate(program);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Program, CutsModelStateIntoTilesAndLeavesTheRestWhole) {
  const Program program = small_program();
  const ShardId weight = program.find(Role::weight, 0),
                activation = program.find(Role::activation, 0);
  EXPECT_EQ(program.num_tiles(weight), 3);
  EXPECT_EQ(program.tile_begin(weight, 2), 8192);
  EXPECT_EQ(program.tile_count(weight, 0), 4096);
  EXPECT_EQ(program.tile_count(weight, 2), 10000 - 8192);
  EXPECT_EQ(program.tile_bytes(weight, 0), 8192);
  EXPECT_EQ(program.num_tiles(activation), 1);
  EXPECT_EQ(program.tile_bytes(activation, 0), 40000);
}

TEST(Program, FindsShardsByRoleAndBlock) {
  const Program program = small_program();
  EXPECT_EQ(program.find(Role::gradient, 0).value, 2);
  EXPECT_FALSE(program.find(Role::gradient, 1).valid());
  EXPECT_FALSE(program.find(Role::master, 0).valid());
  EXPECT_EQ(program.sequence("train")->segments.size(), 1u);
  EXPECT_EQ(program.sequence("eval"), nullptr);
}

// Weight whole, master sliced: 20000 elements on three ranks, padded to 8192 each, in tiles of
// 4096.
struct Ranks {
  Program program;
  ShardId weight, master;
};
Ranks three_ranks(int rank) {
  Ranks ranks;
  ranks.program.tile_elements = 4096;
  ranks.program.world = 3;
  ranks.program.rank = rank;
  ranks.program.zero_stage = 1;
  ranks.weight = ranks.program.add(ranks.program.shared(shard_of(Role::weight, 20000)));
  ranks.master = ranks.program.add(ranks.program.shared(shard_of(Role::master, 20000)));
  return ranks;
}

TEST(ProgramOfRanks, PadsABlockToSlicesOfWholeNormChunks) {
  const auto [program, weight, master] = three_ranks(1);
  EXPECT_EQ(program.shard(weight).count, 3 * 8192);
  EXPECT_EQ(program.shard(master).count, 8192);
  for (const ShardId id : {weight, master}) {
    EXPECT_EQ(program.slice_elements(id), 8192);
    EXPECT_EQ(program.whole_elements(id), 3 * 8192);
    EXPECT_EQ(program.model_elements(id), 20000);
  }
}

TEST(ProgramOfRanks, GivesTilesThatHoldTheSameElementsOnePlace) {
  const auto [program, weight, master] = three_ranks(1);
  EXPECT_EQ(program.num_tiles(weight), 6);
  EXPECT_EQ(program.num_tiles(master), 2);
  EXPECT_EQ(program.place(master, 1), 3);
  EXPECT_EQ(program.place(weight, 3), 3);
  EXPECT_EQ(program.tile_at(master, 3), 1);
  EXPECT_EQ(program.tile_at(weight, 3), 3);
  EXPECT_EQ(program.tile_at(master, 4), -1) << "rank 2's";
  EXPECT_EQ(program.place_begin(master, 3), 8192 + 4096);
  EXPECT_EQ(program.tile_begin(weight, 3), 8192 + 4096);
  EXPECT_EQ(program.tile_begin(master, 1), 4096);
}

TEST(ProgramOfRanks, KnowsWhichTilesAreOfItsOwnSlice) {
  const auto [program, weight, master] = three_ranks(2);
  for (int tile = 0; tile < 6; ++tile) EXPECT_EQ(program.is_own(weight, tile), tile >= 4);
  EXPECT_TRUE(program.is_own(master, 0));
}

TEST(ProgramOfRanks, LeavesModelStateOfOneRankAsItIs) {
  Program program;
  const Shard shard = program.shared(shard_of(Role::master, 20000));
  EXPECT_EQ(shard.count, 20000);
  EXPECT_EQ(shard.whole_count, 0);
  EXPECT_EQ(shard.sharing, Sharing::replicated);
}

TEST(Validate, RefusesARankOrStageThatDoesNotExist) {
  Program program = small_program();
  program.rank = 1;
  expect_refused(program, "rank 1 of 1");
  program.rank = 0;
  program.zero_stage = 4;
  expect_refused(program, "ZeRO stage 4");
}

TEST(Validate, RefusesModelStateThatTheRanksDoNotShare) {
  Program program = small_program();
  program.world = 2;
  expect_refused(program, "'weight/block' is not shared as 2 ranks of ZeRO stage 3");
}

TEST(Validate, AcceptsAProgramThatIsWhole) { EXPECT_NO_THROW(validate(small_program())); }

TEST(Validate, RefusesTilesThatSplitANormChunk) {
  Program program = small_program();
  program.tile_elements = 5000;
  expect_refused(program, "multiple of 4096");
}

TEST(Validate, RefusesAnUnknownShard) {
  Program program = small_program();
  program.segments[0].uses[0].shard = {17};
  expect_refused(program, "the segment");
}

TEST(Validate, RefusesATileThatDoesNotExist) {
  Program program = small_program();
  program.segments[0].uses[0].tile = 3;
  expect_refused(program, "tile 3 of weight/block");
}

TEST(Validate, RefusesAReadOfWhatNothingProduced) {
  Program program = small_program();
  program.segments[0].uses[1].access = Access::read;
  expect_refused(program, "reads 'activation/block' before");
}

TEST(Validate, RefusesAccumulationIntoWhatIsNoGradient) {
  Program program = small_program();
  program.segments[0].uses[1].access = Access::accumulate;
  expect_refused(program, "no gradient");
}

TEST(Validate, RefusesAnEmptyShard) {
  Program program = small_program();
  program.shards[1].count = 0;
  expect_refused(program, "has 0 elements");
}

// One update of a tile of bf16 weights, with a split master.
Program program_with_update() {
  Program program;
  program.tile_elements = 4096;
  program.blocks = {"block"};
  Segment backward, update;
  backward.name = "backward";
  update.kind = SegmentKind::update;
  update.block = 0;
  update.tile = 1;
  update.name = "the update";
  const ShardId gradient = program.add(shard_of(Role::gradient, 5000, DType::bf16));
  backward.uses = {{gradient, Access::accumulate}};
  update.uses = {
      {gradient, Access::read, 1},
      {program.add(shard_of(Role::master, 5000, DType::u16)), Access::update, 1},
      {program.add(shard_of(Role::moment1, 5000, DType::q8)), Access::update, 1},
      {program.add(shard_of(Role::weight, 5000, DType::bf16)), Access::update, 1},
  };
  const SegmentId first = program.add(std::move(backward)), second = program.add(std::move(update));
  program.sequences.push_back({"train", {first, second}});
  return program;
}

TEST(Program, CountsTheScalesOfEightBitMomentsWithTheirTile) {
  const Program program = program_with_update();
  const ShardId moment = program.find(Role::moment1, 0);
  EXPECT_EQ(program.tile_bytes(moment, 0), 4096 + 16 * 4);
  EXPECT_EQ(program.tile_bytes(moment, 1), 960 + 4 * 4) << "904 codes, padded, and four scales";
  EXPECT_EQ(program.shard(moment).bytes(),
            program.tile_bytes(moment, 0) + program.tile_bytes(moment, 1));
}

TEST(Program, FindsTheOperandOfAnUpdateByItsRole) {
  const Program program = program_with_update();
  const Segment& update = program.segments[1];
  EXPECT_EQ(program.use_of(update, Role::weight)->access, Access::update);
  EXPECT_EQ(program.use_of(update, Role::gradient), &update.uses[0]);
  EXPECT_EQ(program.use_of(update, Role::moment2), nullptr);
}

TEST(Validate, AcceptsUpdatesWithOneMomentAndASplitMaster) {
  EXPECT_NO_THROW(validate(program_with_update()));
}

TEST(Validate, RefusesASplitMasterWhoseWeightIsNotItsOtherHalf) {
  Program produced = program_with_update();
  produced.segments[1].uses[3].access = Access::produce;
  expect_refused(produced, "not its half");
  Program whole = program_with_update();
  whole.shards[3].dtype = DType::f32;
  expect_refused(whole, "not its half");
}

TEST(Validate, RefusesAnUpdateThatLacksAnOperandOrHasItTwice) {
  for (std::size_t operand = 0; operand < 4; ++operand) {
    Program lacking = program_with_update();
    auto& uses = lacking.segments[1].uses;
    uses.erase(uses.begin() + static_cast<std::ptrdiff_t>(operand));
    expect_refused(lacking, "the update");
    Program doubled = program_with_update();
    doubled.segments[1].uses.push_back(doubled.segments[1].uses[operand]);
    expect_refused(doubled, "no operand of an update, or not so used");
  }
}

TEST(Validate, RefusesAnUpdateOfAnotherTileThanItsOwn) {
  Program program = program_with_update();
  program.segments[1].uses[2].tile = 0;
  expect_refused(program, "another tile of 'moment1/block'");
}

TEST(Validate, RefusesFormatsOfStateElsewhere) {
  Program moments = program_with_update();
  moments.shards[3].dtype = DType::q8;
  expect_refused(moments, "the format of moments");
  Program halves = program_with_update();
  halves.shards[2].dtype = DType::u16;
  expect_refused(halves, "the format of a split master");
}

}  // namespace
}  // namespace strata
