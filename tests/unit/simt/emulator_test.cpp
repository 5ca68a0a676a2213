// The emulator finds what it is there to find, and lets right kernels be.

#include "simt/emulator.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "kernels/cuda/simt.hpp"

namespace strata::cuda {
namespace {

using simt::Emulator;
using simt::Fault;
using simt::FaultKind;

class EmulatorTest : public ::testing::Test {
 protected:
  // Room for 64 ints in memory that is a multiple of 16 bytes away from address 0.
  Global<int> ints() { return {values_.data(), 64}; }

  // The fault that a launch under some seed ends with; its text goes to `text_`.
  template <class... Parameters, class... Arguments>
  std::optional<FaultKind> fault_of(void (*kernel)(Parameters...), const LaunchShape& shape,
                                    const Arguments&... arguments) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      Emulator emulator(seed);
      try {
        emulator.launch("tried", kernel, shape, arguments...);
      } catch (const Fault& fault) {
        text_ = fault.what();
        return fault.kind();
      }
    }
    return std::nullopt;
  }

  alignas(16) std::array<int, 64> values_{};
  std::string text_;
};

constexpr LaunchShape one_warp{.shared_bytes = 256};
constexpr LaunchShape two_warps{.threads = 64, .shared_bytes = 256};
constexpr LaunchShape two_blocks{.grid_x = 2, .shared_bytes = 256};

STRATA_KERNEL(64) write_own(Global<int> out) {
  out.store(block_x() * block_threads() + thread_index(), thread_index());
}

TEST_F(EmulatorTest, RunsEveryThreadOfEveryBlock) {
  EXPECT_EQ(fault_of(write_own, two_blocks, ints()), std::nullopt);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(values_[i], static_cast<int>(i % 32));
}

TEST_F(EmulatorTest, FindsAStoreOutOfBoundsAndNamesItsPlace) {
  EXPECT_EQ(fault_of(write_own, {.grid_x = 3}, ints()), FaultKind::out_of_bounds);
  EXPECT_EQ(text_, "tried, block (2, 0), thread 0: elements [64, 65) of 64");
}

STRATA_KERNEL(32) load_group_at(Global<int> from, std::int64_t i) { from.load_group<4>(i); }

TEST_F(EmulatorTest, FindsGroupsOutOfBoundsAndMisaligned) {
  EXPECT_EQ(fault_of(load_group_at, one_warp, ints(), 60), std::nullopt);
  EXPECT_EQ(fault_of(load_group_at, one_warp, ints(), 64), FaultKind::out_of_bounds);
  EXPECT_EQ(fault_of(load_group_at, one_warp, ints(), -4), FaultKind::out_of_bounds);
  EXPECT_EQ(fault_of(load_group_at, one_warp, ints(), 2), FaultKind::misaligned);
}

STRATA_KERNEL(32) shared_beyond_the_launch(int count) {
  const Shared<int> shared(0, count);
  shared.store(0, 1);
}

TEST_F(EmulatorTest, FindsSharedArraysBeyondTheLaunchAndBlocksNoDeviceTakes) {
  EXPECT_EQ(fault_of(shared_beyond_the_launch, one_warp, 65), FaultKind::out_of_bounds);
  EXPECT_EQ(fault_of(write_own, {.threads = 33}, ints()), FaultKind::bad_launch);
  EXPECT_EQ(fault_of(write_own, {.threads = 2048}, ints()), FaultKind::bad_launch);
  EXPECT_EQ(fault_of(write_own, {.grid_x = 0}, ints()), FaultKind::bad_launch);
  EXPECT_EQ(fault_of(write_own, {.shared_bytes = 1 << 20}, ints()), FaultKind::bad_launch);
}

// --- Races

enum class Between : std::uint8_t { nothing, warp_barrier, block_barrier };

void meet(Between between) {
  if (between == Between::warp_barrier) sync_warp();
  if (between == Between::block_barrier) sync_threads();
}

// Every thread writes its element and reads one of another.
STRATA_KERNEL(64) neighbour_in_shared(Between between, int distance) {
  const Shared<int> shared(0, block_threads());
  shared.store(thread_index(), 1);
  meet(between);
  shared.load((thread_index() + distance) % block_threads());
}

TEST_F(EmulatorTest, FindsRacesInSharedMemory) {
  // Who reads too early may find that nobody wrote yet.
  const auto is_race = [](std::optional<FaultKind> kind) {
    return kind == FaultKind::race || kind == FaultKind::uninitialized;
  };
  EXPECT_TRUE(is_race(fault_of(neighbour_in_shared, one_warp, Between::nothing, 1)));
  EXPECT_EQ(fault_of(neighbour_in_shared, one_warp, Between::nothing, 0), std::nullopt);
  EXPECT_EQ(fault_of(neighbour_in_shared, one_warp, Between::warp_barrier, 1), std::nullopt);
  EXPECT_TRUE(is_race(fault_of(neighbour_in_shared, two_warps, Between::warp_barrier, 32)));
  EXPECT_EQ(fault_of(neighbour_in_shared, two_warps, Between::block_barrier, 32), std::nullopt);
}

// Every thread reads one element that one thread then writes.
STRATA_KERNEL(64) overwrite_after_reads(Between between, int writer) {
  const Shared<int> shared(0, 1);
  if (thread_index() == 0) shared.store(0, 1);
  sync_threads();
  shared.load(0);
  meet(between);
  if (thread_index() == writer) shared.store(0, 2);
}

TEST_F(EmulatorTest, FindsWritesThatRaceWithReads) {
  for (int writer : {0, 13, 31}) {
    EXPECT_EQ(fault_of(overwrite_after_reads, one_warp, Between::nothing, writer), FaultKind::race);
    EXPECT_EQ(fault_of(overwrite_after_reads, one_warp, Between::warp_barrier, writer),
              std::nullopt);
    EXPECT_EQ(fault_of(overwrite_after_reads, two_warps, Between::warp_barrier, writer),
              FaultKind::race);
    EXPECT_EQ(fault_of(overwrite_after_reads, two_warps, Between::block_barrier, writer),
              std::nullopt);
  }
}

STRATA_KERNEL(32) shuffle_is_no_barrier() {
  const Shared<int> shared(0, 32);
  shared.store(thread_index(), 1);
  shuffle_xor(thread_index(), 1);
  shared.load(thread_index() ^ 1);
}

TEST_F(EmulatorTest, TakesNoShuffleForABarrier) {
  EXPECT_EQ(fault_of(shuffle_is_no_barrier, one_warp), FaultKind::race);
}

STRATA_KERNEL(32) write_one(Global<int> out) {
  if (thread_index() == 0) out.store(0, 1);
}
STRATA_KERNEL(32) read_what_block_0_writes(Global<int> out) {
  if (block_x() == 0 && thread_index() == 0) out.store(0, 1);
  sync_threads();
  if (block_x() == 1) out.load(0);
}
STRATA_KERNEL(32) count_up(Global<int> out) { out.atomic_add(0, 1); }
STRATA_KERNEL(32) count_up_and_read(Global<int> out) {
  out.atomic_add(0, 1);
  if (thread_index() == 7) out.load(0);
}
STRATA_KERNEL(32) read_one(Global<int> out) { out.load(0); }

TEST_F(EmulatorTest, FindsRacesInGlobalMemoryAlsoBetweenBlocks) {
  EXPECT_EQ(fault_of(write_one, one_warp, ints()), std::nullopt);
  EXPECT_EQ(fault_of(write_one, two_blocks, ints()), FaultKind::race);
  EXPECT_EQ(fault_of(read_what_block_0_writes, two_blocks, ints()), FaultKind::race);
  EXPECT_EQ(fault_of(count_up_and_read, one_warp, ints()), FaultKind::race);
}

TEST_F(EmulatorTest, LetsAtomicsAndReadsBe) {
  EXPECT_EQ(fault_of(count_up, {.grid_x = 2}, ints()), std::nullopt);
  EXPECT_EQ(values_[0], 4 * 64);  // fault_of() tries four seeds.
  EXPECT_EQ(fault_of(read_one, {.grid_x = 2, .threads = 64}, ints()), std::nullopt);
}

STRATA_KERNEL(32) read_first() { Shared<int>(0, 32).load(thread_index()); }

TEST_F(EmulatorTest, FindsReadsOfSharedMemoryThatNobodyWrote) {
  EXPECT_EQ(fault_of(read_first, one_warp), FaultKind::uninitialized);
}

// --- Divergence

STRATA_KERNEL(64) sync_some(int threads) {
  if (thread_index() < threads) sync_threads();
}
STRATA_KERNEL(64) sync_apart() {
  if (thread_index() < 32) {
    sync_threads();
  } else {
    sync_threads();
  }
}
STRATA_KERNEL(32) shuffle_some() {
  if (thread_index() != 3) shuffle_xor(1, 1);
}
STRATA_KERNEL(32) shuffle_against_barrier() {
  if (thread_index() < 16) {
    shuffle_xor(1, 1);
  } else {
    sync_threads();
  }
}

TEST_F(EmulatorTest, FindsBarriersThatNotAllReach) {
  EXPECT_EQ(fault_of(sync_some, two_warps, 64), std::nullopt);
  EXPECT_EQ(fault_of(sync_some, two_warps, 32), FaultKind::divergence);
  EXPECT_EQ(fault_of(sync_some, two_warps, 63), FaultKind::divergence);
  EXPECT_EQ(fault_of(sync_apart, two_warps), FaultKind::divergence);
}

TEST_F(EmulatorTest, FindsWarpOperationsThatNotAllLanesReach) {
  EXPECT_EQ(fault_of(shuffle_some, one_warp), FaultKind::divergence);
  EXPECT_EQ(fault_of(shuffle_against_barrier, one_warp), FaultKind::divergence);
}

// --- Warps

STRATA_KERNEL(32) shuffles(Global<int> out) {
  const int lane = lane_index();
  int sum = lane;
  for (int mask = 16; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
  const int down = shuffle_down(lane, 3), first = shuffle(lane + 7, 0);
  const std::uint32_t odd = ballot(lane % 2 == 1);
  out.store(lane, sum == 496 && first == 7 && odd == 0xaaaaaaaau ? down : -1);
}

TEST_F(EmulatorTest, ShufflesAndVotes) {
  EXPECT_EQ(fault_of(shuffles, one_warp, ints()), std::nullopt);
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(values_[static_cast<std::size_t>(lane)], lane < 29 ? lane + 3 : lane);
}

// --- Asynchronous copies

enum class Waiting : std::uint8_t { none, all };

STRATA_KERNEL(32) copy_through_shared(Global<const int> from, Global<int> to, Waiting waiting) {
  const Shared<int> shared(0, 4);
  if (thread_index() == 0) {
    copy_async16(shared, 0, from, 0, true);
    commit_copies();
    if (waiting == Waiting::all) wait_copies<0>();
    for (int i = 0; i < 4; ++i) to.store(i, shared.load(i));
    wait_copies<0>();
  }
}
STRATA_KERNEL(32) copy_and_leave(Global<const int> from) {
  copy_async16(Shared<int>(0, 4 * 32), 4 * thread_index(), from, 0, true);
  commit_copies();
}

TEST_F(EmulatorTest, CompletesAsynchronousCopiesWhenTheyAreWaitedFor) {
  alignas(16) std::array<int, 4> source = {5, 6, 7, 8};
  const Global<const int> from(source.data(), 4);
  EXPECT_EQ(fault_of(copy_through_shared, one_warp, from, ints(), Waiting::all), std::nullopt);
  EXPECT_EQ(values_[3], 8);
  EXPECT_EQ(fault_of(copy_through_shared, one_warp, from, ints(), Waiting::none), std::nullopt);
  EXPECT_NE(values_[3], 8) << "the copy may not be there before it is waited for";
}

STRATA_KERNEL(32) copy_nothing(Global<const int> from, Global<int> to) {
  const Shared<int> shared(0, 4);
  if (thread_index() == 0) {
    copy_async16(shared, 0, from, 1 << 20, false);
    commit_copies();
    wait_copies<0>();
    for (int i = 0; i < 4; ++i) to.store(i, shared.load(i));
  }
}

TEST_F(EmulatorTest, CopiesZerosWhereNothingIsWantedAndReadsNothing) {
  values_.fill(7);
  const Global<const int> from(values_.data(), 64);
  EXPECT_EQ(fault_of(copy_nothing, one_warp, from, ints()), std::nullopt);
  EXPECT_EQ(values_[3], 0);
}

STRATA_KERNEL(32) overwrite_while_copying(Global<const int> from) {
  const Shared<int> shared(0, 4);
  if (thread_index() == 0) copy_async16(shared, 0, from, 0, true);
  if (thread_index() == 1) shared.store(2, 1);
  commit_copies();
  wait_copies<0>();
}

TEST_F(EmulatorTest, FindsRacesWithCopiesUnderWay) {
  EXPECT_EQ(fault_of(overwrite_while_copying, one_warp, Global<const int>(values_.data(), 64)),
            FaultKind::race);
}

TEST_F(EmulatorTest, FindsThreadsThatLeaveTheirCopies) {
  EXPECT_EQ(fault_of(copy_and_leave, {.shared_bytes = 512}, Global<const int>(values_.data(), 64)),
            FaultKind::pending_copy);
}

// --- Order

STRATA_KERNEL(32) note_block(Global<int> out) {
  if (thread_index() == 0) {
    out.atomic_add(0, 1);
    out.store(1 + block_x(), *out.touched(0, 1, simt::Touch::atomic));
  }
}

TEST_F(EmulatorTest, RunsBlocksInAnOrderThatFollowsFromTheSeed) {
  const auto order = [&](std::uint64_t seed) {
    values_ = {};
    Emulator(seed).launch("note", note_block, {.grid_x = 20}, ints());
    return std::vector<int>(values_.begin() + 1, values_.begin() + 21);
  };
  EXPECT_EQ(order(0), [] {
    std::vector<int> rising(20);
    std::iota(rising.begin(), rising.end(), 1);
    return rising;
  }());
  EXPECT_EQ(order(5), order(5));
  EXPECT_NE(order(5), order(6));
}

}  // namespace
}  // namespace strata::cuda
