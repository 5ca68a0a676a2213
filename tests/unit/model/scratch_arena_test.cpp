#include "src/model/scratch_arena.hpp"

#include <gtest/gtest.h>

#include "unit/model/guarded_buffer.hpp"

namespace strata::test {
namespace {

// What a segment might take: its pieces, two of them in the same place.
std::vector<TensorView> carve(ScratchArena& arena) {
  std::vector<TensorView> views;
  views.push_back(arena.take(DType::bf16, {3, 5}));
  const std::uint64_t shared = arena.position();
  views.push_back(arena.take(DType::f32, {100}));
  arena.rewind(shared);
  views.push_back(arena.take(DType::f32, {7}));
  return views;
}

TEST(ScratchArena, CountsExactlyWhatItHandsOut) {
  ScratchArena counter;
  carve(counter);
  const GuardedBuffer memory(counter.peak_bytes());
  ScratchArena arena(memory.bytes());
  carve(arena);
  EXPECT_EQ(arena.peak_bytes(), counter.peak_bytes());
  EXPECT_EQ(counter.peak_bytes(), 256u + 512u);
}

TEST(ScratchArena, HandsOutNoMemoryWhileItCounts) {
  ScratchArena counter;
  for (const TensorView& view : carve(counter)) EXPECT_TRUE(view.empty());
}

TEST(ScratchArena, AlignsEveryPiece) {
  const GuardedBuffer memory(1024);
  ScratchArena arena(memory.bytes());
  for (const TensorView& view : carve(arena)) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data) % ScratchArena::alignment, 0u);
  }
}

TEST(ScratchArena, HandsOutAPlaceAgainAfterARewind) {
  const GuardedBuffer memory(1024);
  ScratchArena arena(memory.bytes());
  const std::vector<TensorView> views = carve(arena);
  EXPECT_EQ(views[1].data, views[2].data);
  EXPECT_NE(views[0].data, views[1].data);
}

TEST(ScratchArenaDeathTest, StopsWhenAskedForMoreThanThereIs) {
  const GuardedBuffer memory(512);
  ScratchArena arena(memory.bytes());
  EXPECT_DEATH(arena.take(DType::f32, {129}), "");
}

}  // namespace
}  // namespace strata::test
