// The optimizer pass gives the bits of the scalar oracle in every layout of its state: on every
// SIMD target that this machine runs, with any number of threads, from any address, however a shard
// is cut into tiles, and whatever floating-point mode the caller left.

#include <cfenv>
#include <limits>

#include "hwy/base.h"
#if HWY_ARCH_X86
#include <xmmintrin.h>
#endif

#include "contract/kernels/exact_harness.hpp"
#include "contract/kernels/update_tile.hpp"
#include "strata/core/block_q8.hpp"

namespace strata::testing {
namespace {

// Rounds up and, where the processor can, flushes denormals to zero, while alive.
class OddFloatingPointMode {
 public:
  OddFloatingPointMode() {
    std::fegetenv(&saved_);
    std::fesetround(FE_UPWARD);
#if HWY_ARCH_X86
    _mm_setcsr(_mm_getcsr() | 0x8040u);
#endif
  }
  ~OddFloatingPointMode() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
};

class UpdateBits : public ExactFamily {
 protected:
  UpdateTile updated(Kernels& kernels, const UpdateTile& start, std::int64_t offset = 0) {
    UpdateTile tile = start.cut(0, start.count, offset);
    kernels.update(tile.args(), stream());
    return tile;
  }
  // Updates `start` tile by tile; the last begins are random multiples of `unit`.
  void expect_tiles(Kernels& kernels, const UpdateTile& start, const UpdateTile& expected,
                    std::int64_t unit) {
    PhiloxStream random(31, 0);
    for (std::int64_t begin = 0; begin < start.count;) {
      const auto size = static_cast<std::int64_t>(1 + random.next_below(2000 / unit + 1)) * unit;
      const std::int64_t count = std::min(size, start.count - begin);
      UpdateTile tile = start.cut(begin, count, static_cast<std::int64_t>(random.next_below(40)));
      kernels.update(tile.args(), stream());
      EXPECT_TRUE(tile.bits() == expected.cut(begin, count, 0).bits()) << "tile at " << begin;
      begin += count;
    }
  }
};

TEST_F(UpdateBits, AreThoseOfTheReferenceInEveryLayout) {
  const auto cpu = make_cpu_kernels({.num_threads = 1});
  for (const UpdateLayout& layout : update_layouts()) {
    SCOPED_TRACE(layout.name());
    const UpdateTile start = UpdateTile::random(layout, 4423, 21);
    const std::string expected = updated(*ref_, start).bits();
    EXPECT_NE(start.bits(), expected);
    on_every_target([&] { EXPECT_TRUE(updated(*cpu, start).bits() == expected); });
  }
}

TEST_F(UpdateBits, AreThoseOfTheReferenceForSmallTiles) {
  const auto cpu = make_cpu_kernels({.num_threads = 1});
  for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
    for (std::int64_t n : {1, 2, 15, 31, 64, 255, 256, 257}) {
      const UpdateTile start =
          UpdateTile::random({.gradient = DType::bf16, .moments = moments}, n, 22);
      const std::string expected = updated(*ref_, start).bits();
      on_every_target([&] { EXPECT_TRUE(updated(*cpu, start).bits() == expected) << n; });
    }
  }
}

TEST_F(UpdateBits, DoNotFeelThreads) {
  for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
    const UpdateTile start =
        UpdateTile::random({.gradient = DType::bf16, .moments = moments}, 140003, 23);
    const std::string expected = updated(*ref_, start).bits();
    on_every_cpu([&](Kernels& cpu) { EXPECT_TRUE(updated(cpu, start).bits() == expected); });
  }
}

TEST_F(UpdateBits, DoNotFeelAddresses) {
  const auto cpu = make_cpu_kernels({.num_threads = 2});
  for (DType master : {DType::f32, DType::u16}) {
    for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
      const UpdateTile start = UpdateTile::random({.master = master, .moments = moments}, 1003, 24);
      const std::string expected = updated(*ref_, start).bits();
      on_every_target([&] {
        for (std::int64_t offset : {1, 3, 7, 32})
          EXPECT_TRUE(updated(*cpu, start, offset).bits() == expected) << "offset " << offset;
      });
    }
  }
}

TEST_F(UpdateBits, DoNotFeelTiles) {
  const auto cpu = make_cpu_kernels({.num_threads = 1});
  for (DType master : {DType::f32, DType::u16}) {
    for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
      const UpdateTile start = UpdateTile::random(
          {.gradient = DType::bf16, .master = master, .moments = moments}, 9001, 25);
      const UpdateTile expected = [&] {
        UpdateTile tile = updated(*ref_, start);
        tile.non_finite.set(0, 0);
        return tile;
      }();
      const std::int64_t unit = moments == DType::q8 ? q8_block_elements : 1;
      on_every_target([&] { expect_tiles(*cpu, start, expected, unit); });
      expect_tiles(*ref_, start, expected, unit);
    }
  }
}

TEST_F(UpdateBits, DoNotFeelTheCallersFloatingPointMode) {
  const auto cpu = make_cpu_kernels({.num_threads = 1});
  for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
    const UpdateTile start = UpdateTile::random({.moments = moments}, 1003, 26);
    const std::string expected = updated(*ref_, start).bits();
    const UpdateTile tile = start.cut(0, start.count, 0);
    const UpdateArgs args = tile.args();
    {
      const OddFloatingPointMode odd;
      cpu->update(args, stream());
      EXPECT_EQ(std::fegetround(), FE_UPWARD);
    }
    EXPECT_TRUE(tile.bits() == expected);
  }
}

TEST_F(UpdateBits, OfASplitMasterGiveTheWeightsOfAWholeOne) {
  for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
    const UpdateLayout whole{.gradient = DType::bf16, .moments = moments};
    UpdateLayout split = whole;
    split.master = DType::u16;
    UpdateTile one = UpdateTile::random(whole, 1003, 27),
               other = UpdateTile::random(split, 1003, 27);
    ref_->update(one.args(), stream());
    ref_->update(other.args(), stream());
    EXPECT_TRUE(one.bits() == other.bits());
  }
}

TEST_F(UpdateBits, CountGradientsThatAreNotFinite) {
  constexpr float inf = std::numeric_limits<float>::infinity(),
                  nan = std::numeric_limits<float>::quiet_NaN();
  for (const UpdateLayout& layout : update_layouts()) {
    SCOPED_TRACE(layout.name());
    UpdateTile start = UpdateTile::random(layout, 5003, 28);
    start.gradient.set(0, inf);
    start.gradient.set(4097, -inf);
    start.gradient.set(5002, static_cast<double>(nan));
    const UpdateTile expected = updated(*ref_, start);
    EXPECT_EQ(expected.non_finite.at(0), 3);
    const auto cpu = make_cpu_kernels({.num_threads = 2});
    on_every_target([&] { EXPECT_TRUE(updated(*cpu, start).bits() == expected.bits()); });
  }
}

TEST_F(UpdateBits, CountNothingWhereAllIsFiniteOrNobodyAsks) {
  UpdateTile tile = UpdateTile::random({}, 5003, 29);
  const auto cpu = make_cpu_kernels({.num_threads = 2});
  cpu->update(tile.args(), stream());
  EXPECT_EQ(tile.non_finite.at(0), 0);
  tile.gradient.set(17, std::numeric_limits<double>::infinity());
  UpdateArgs args = tile.args();
  args.non_finite = {};
  cpu->update(args, stream());
  EXPECT_EQ(tile.non_finite.at(0), 0);
}

TEST_F(UpdateBits, OfRoundedMomentsChangeWithSeedShardAndStepOnly) {
  const UpdateTile start = UpdateTile::random({.moments = DType::bf16}, 5003, 30);
  const auto moments = [&](auto change) {
    const UpdateTile tile = start.cut(0, start.count, 0);
    UpdateArgs args = tile.args();
    change(args);
    ref_->update(args, stream());
    return tile.moment1.bits();
  };
  const std::string same = moments([](UpdateArgs&) {});
  EXPECT_EQ(moments([](UpdateArgs& args) { args.weight = {}; }), same);
  EXPECT_NE(moments([](UpdateArgs& args) { ++args.seed; }), same);
  EXPECT_NE(moments([](UpdateArgs& args) { ++args.shard; }), same);
  EXPECT_NE(moments([](UpdateArgs& args) { ++args.step; }), same);
}

}  // namespace
}  // namespace strata::testing
