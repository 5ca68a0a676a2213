// What an optimizer keeps, moves and declares, and that its update passes on what it was told.

#include "strata/optim/optimizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

OptimizerConfig config_of(UpdateRule rule, MasterFormat master, DType moments) {
  OptimizerConfig config;
  config.rule = rule;
  config.master = master;
  config.moments = moments;
  return config;
}

Program program_with_one_block(std::int64_t count, int world = 1, int rank = 0,
                               int zero_stage = 3) {
  Program program;
  program.world = world;
  program.rank = rank;
  program.zero_stage = zero_stage;
  program.tile_elements = norm_chunk_elements;
  program.blocks = {"layer"};
  for (const Role role : {Role::weight, Role::gradient}) {
    Shard shard;
    shard.role = role;
    shard.block = 0;
    shard.dtype = DType::bf16;
    shard.count = count;
    shard.name = role_name(role);
    program.add(program.shared(shard));
  }
  return program;
}

TEST(Optimizer, KnowsItsRulesByName) {
  for (const UpdateRule rule :
       {UpdateRule::adamw, UpdateRule::adam, UpdateRule::sgd, UpdateRule::lion})
    EXPECT_EQ(parse_update_rule(update_rule_name(rule)), rule);
  try {
    parse_update_rule("adafactor");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'adafactor'"));
    EXPECT_THAT(error.what(), HasSubstr("adamw, adam, sgd, lion"));
  }
}

TEST(Optimizer, StatesTheBytesItKeepsAndMoves) {
  const auto kept = [](MasterFormat master, DType moments) {
    return state_bytes_per_parameter(config_of(UpdateRule::adamw, master, moments));
  };
  EXPECT_EQ(kept(MasterFormat::f32, DType::f32), 12);
  EXPECT_EQ(kept(MasterFormat::split, DType::f32), 10);
  EXPECT_EQ(kept(MasterFormat::split, DType::bf16), 6);
  EXPECT_EQ(kept(MasterFormat::split, DType::q8), 4 + 2 * 4.0 / 256);
  const auto moved = [](const OptimizerConfig& config) {
    return pass_bytes_per_parameter(config, DType::bf16, DType::bf16);
  };
  EXPECT_EQ(moved({}), 28);
  EXPECT_EQ(moved(config_of(UpdateRule::adamw, MasterFormat::split, DType::q8)), 14.0625);
  EXPECT_EQ(moved(config_of(UpdateRule::lion, MasterFormat::f32, DType::f32)), 20);
}

TEST(Optimizer, CallsOnlyFp32MomentsExact) {
  EXPECT_TRUE(is_exact(config_of(UpdateRule::adamw, MasterFormat::split, DType::f32)));
  EXPECT_FALSE(is_exact(config_of(UpdateRule::adamw, MasterFormat::f32, DType::bf16)));
  EXPECT_FALSE(is_exact(config_of(UpdateRule::adamw, MasterFormat::f32, DType::q8)));
}

TEST(Optimizer, SaysWhatItKeepsAndWhichOfItIsApproximate) {
  EXPECT_EQ(describe({}),
            "adamw, master fp32 (exact), moments fp32 (exact), 12 bytes of state per parameter");
  EXPECT_EQ(describe(config_of(UpdateRule::lion, MasterFormat::split, DType::q8)),
            "lion, master split (exact), moments q8 (approximate), 3.016 bytes of state per "
            "parameter");
}

TEST(Optimizer, DeclaresOneUpdateATileWithItsStateBetweenGradientAndWeight) {
  Program program = program_with_one_block(3 * norm_chunk_elements / 2);
  Sequence train{"train", {}};
  Optimizer::declare(config_of(UpdateRule::adam, MasterFormat::f32, DType::bf16), program, train);
  ASSERT_EQ(train.segments.size(), 3u) << "norm and two tiles";
  EXPECT_EQ(program.segment(train.segments[0]).kind, SegmentKind::norm);
  const Segment& update = program.segment(train.segments[2]);
  const Role roles[] = {Role::gradient, Role::master, Role::moment1, Role::moment2, Role::weight};
  ASSERT_EQ(update.uses.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(program.shard(update.uses[i].shard).role, roles[i]);
    EXPECT_EQ(update.uses[i].tile, 1);
  }
  EXPECT_EQ(program.shard(program.find(Role::moment2, 0)).dtype, DType::bf16);
  EXPECT_EQ(update.uses[4].access, Access::produce);
}

TEST(Optimizer, UpdatesTheWeightOfASplitMasterInPlace) {
  Program program = program_with_one_block(norm_chunk_elements);
  Sequence train{"train", {}};
  Optimizer::declare(config_of(UpdateRule::lion, MasterFormat::split, DType::f32), program, train);
  const Segment& update = program.segment(train.segments[1]);
  ASSERT_EQ(update.uses.size(), 4u) << "gradient, master, one moment, weight";
  EXPECT_EQ(program.shard(update.uses[1].shard).dtype, DType::u16);
  EXPECT_EQ(update.uses[3].access, Access::update);
  EXPECT_FALSE(program.find(Role::moment2, 0).valid());
}

// Of two tiles per slice, rank 1 of three updates tiles 2 and 3 of what it holds whole.
TEST(Optimizer, UpdatesThisRanksSliceOfWhatAllRanksHold) {
  Program program = program_with_one_block(6 * norm_chunk_elements, 3, 1, 2);
  Sequence train{"train", {}};
  Optimizer::declare({}, program, train);
  validate(program);
  ASSERT_EQ(train.segments.size(), 3u) << "norm and two tiles";
  const Segment& update = program.segment(train.segments[2]);
  EXPECT_EQ(update.tile, 1);
  EXPECT_EQ(program.use_of(update, Role::gradient)->tile, 1);
  EXPECT_EQ(program.use_of(update, Role::weight)->tile, 3);
  EXPECT_EQ(program.shard(program.find(Role::master, 0)).count, 2 * norm_chunk_elements);
}

TEST(Optimizer, UpdatesAllThatEveryRankHoldsWhereNothingIsSliced) {
  Program program = program_with_one_block(6 * norm_chunk_elements, 3, 1, 0);
  Sequence train{"train", {}};
  Optimizer::declare({}, program, train);
  validate(program);
  EXPECT_EQ(train.segments.size(), 7u) << "norm and six tiles";
}

// A tile of a block's elements [begin, begin + 8), all gradients and weights one.
struct Tile {
  std::vector<float> gradient = std::vector<float>(8, 1), master = gradient;
  std::vector<float> moment1 = std::vector<float>(8), moment2 = moment1, weight = moment1;

  TileUpdate at(std::int64_t begin) {
    const auto view = [](std::vector<float>& values) {
      return TensorView{values.data(), DType::f32, {8}};
    };
    TileUpdate tile;
    tile.block = 0;
    tile.begin = begin;
    tile.gradient = view(gradient);
    tile.master = view(master);
    tile.moment1 = view(moment1);
    tile.moment2 = view(moment2);
    tile.weight = view(weight);
    return tile;
  }
};

TEST(Optimizer, DecaysOnlyTheRangesOfTheBlock) {
  const auto kernels = make_ref_kernels();
  OptimizerConfig config;
  config.weight_decay = 0.5;
  Optimizer optimizer(config, {{{102, 104}, {107, 200}}}, *kernels);
  Tile tile;
  tile.gradient.assign(8, 0);
  const auto stream = make_host_device({})->make_stream("update");
  optimizer.update(tile.at(100), {.step = 1, .learning_rate = 0.1f}, {}, *stream);
  const float decayed = tile.master[2];
  EXPECT_NEAR(decayed, 0.95f, 1e-6f);
  EXPECT_THAT(tile.master, ::testing::ElementsAre(1, 1, decayed, decayed, 1, 1, 1, decayed));
  EXPECT_EQ(tile.weight, tile.master);
}

TEST(Optimizer, KeepsItsStateAndOnlyCastsTheWeightWhenTheUpdateIsNotApplied) {
  const auto kernels = make_ref_kernels();
  Optimizer optimizer({}, {{}}, *kernels);
  Tile tile;
  const auto stream = make_host_device({})->make_stream("update");
  optimizer.update(tile.at(0), {.step = 1, .learning_rate = 0.1f}, {.apply = 0}, *stream);
  EXPECT_EQ(tile.master, std::vector<float>(8, 1));
  EXPECT_EQ(tile.moment1, std::vector<float>(8, 0));
  EXPECT_EQ(tile.weight, tile.master);
}

TEST(Optimizer, TakesStepClipFactorAndRateFromTheCall) {
  const auto kernels = make_ref_kernels();
  Optimizer optimizer({}, {{}}, *kernels);
  const auto stream = make_host_device({})->make_stream("update");
  Tile first, later;
  optimizer.update(first.at(0), {.step = 1, .learning_rate = 0.1f}, {.clip_factor = 0.5f}, *stream);
  optimizer.update(later.at(0), {.step = 1000000, .learning_rate = 0.1f}, {.clip_factor = 0.5f},
                   *stream);
  EXPECT_NEAR(first.moment1[0], 0.05f, 1e-7f);
  EXPECT_NEAR(first.master[0], 0.9f, 1e-6f) << "bias-corrected: a whole step";
  EXPECT_NEAR(later.master[0], 1 - 0.1f * 0.05f / std::sqrt(0.00025f), 1e-5f);
}

}  // namespace
}  // namespace strata
