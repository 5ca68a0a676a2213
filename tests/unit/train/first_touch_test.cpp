#include "src/train/first_touch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "strata/core/bytes.hpp"
#include "strata/memory/tier_memory.hpp"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t page = 4 * KiB;
constexpr std::size_t large_page = 2 * MiB;

// Three threads on the first node, one on the second.
std::vector<NodeThreads> uneven_nodes() { return {{0, 3, {0}}, {1, 1, {1}}}; }

std::string no_binding(std::span<const int>) { return "refused"; }

Slab slab_of(std::uint64_t bytes) { return make_host_device({})->allocate_pinned(bytes); }

std::span<std::byte> all_of(const Slab& slab) { return {slab.data(), slab.bytes()}; }

std::vector<std::size_t> sizes(const FirstTouch::Spans& spans) {
  std::vector<std::size_t> sizes;
  for (const auto& span : spans) sizes.push_back(span.size());
  return sizes;
}

TEST(FirstTouch, DividesEachRegionInProportionToTheThreads) {
  const Slab slab = slab_of(64 * page);
  FirstTouch touch(uneven_nodes());
  touch.divide(all_of(slab).first(40 * page));
  touch.divide(all_of(slab).subspan(40 * page, 8 * page));
  EXPECT_THAT(sizes(touch.spans()[0]), ElementsAre(30 * page, 6 * page));
  EXPECT_THAT(sizes(touch.spans()[1]), ElementsAre(10 * page, 2 * page));
  EXPECT_EQ(touch.spans()[1][0].data(), slab.data() + 30 * page) << "neighbours, in order";
  EXPECT_EQ(touch.spans()[1][1].data(), slab.data() + 46 * page);
}

TEST(FirstTouch, CutsAtPagesAndKeepsTheLastPartOfOne) {
  const Slab slab = slab_of(4 * page);
  FirstTouch touch(uneven_nodes());
  touch.divide(all_of(slab).first(3 * page + 100));
  EXPECT_THAT(sizes(touch.spans()[0]), ElementsAre(3 * page));
  EXPECT_THAT(sizes(touch.spans()[1]), ElementsAre(100u));
}

TEST(FirstTouch, LeavesARegionOfOnePageWhole) {
  const Slab slab = slab_of(page);
  FirstTouch touch(uneven_nodes());
  touch.divide(all_of(slab).first(8));
  EXPECT_THAT(sizes(touch.spans()[0]), IsEmpty());
  EXPECT_THAT(sizes(touch.spans()[1]), ElementsAre(8u));
}

TEST(FirstTouch, DealsLargePagesInTurn) {
  const Slab slab = slab_of(9 * large_page + page);
  FirstTouch touch(uneven_nodes());
  touch.interleave(all_of(slab));
  EXPECT_EQ(touch.spans()[0].size(), 8u);
  EXPECT_THAT(sizes(touch.spans()[1]), ElementsAre(large_page, large_page));
  EXPECT_EQ(touch.spans()[1][1].data(), slab.data() + 7 * large_page);
  EXPECT_EQ(touch.spans()[0].back().size(), page);
}

TEST(FirstTouch, TouchesEveryPageAndLeavesZeros) {
  const Slab slab = slab_of(5 * large_page + 3 * page), untouched = slab_of(large_page);
  FirstTouch touch(uneven_nodes());
  touch.divide(all_of(slab).first(2 * large_page));
  touch.interleave(all_of(slab).subspan(2 * large_page));
  touch.run(no_binding);
  EXPECT_EQ(resident_bytes(slab), slab.bytes());
  EXPECT_EQ(resident_bytes(untouched), 0u);
  EXPECT_TRUE(std::ranges::all_of(all_of(slab), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(FirstTouch, RunsAsManyThreadsOnEachNodeAsWillWorkThere) {
  std::mutex mutex;
  std::multiset<int> bound;
  FirstTouch(uneven_nodes()).run([&](std::span<const int> cores) {
    const std::lock_guard lock(mutex);
    bound.insert(cores.front());
    return std::string();
  });
  EXPECT_THAT(bound, ElementsAre(0, 0, 0, 1));
}

TEST(FirstTouch, KnowsTheHomesAndSlotsInHostMemory) {
  Plan plan;
  plan.homes = {{{Tier::host, 0, 0, page}, {Tier::device, 0, 0, page}},
                {},
                {{Tier::nvme, 0, 0, page}, {Tier::host, 0, 3 * page, 2 * page}}};
  plan.pools = {{"state slots", Tier::host, 8 * page, page, 2},
                {"weight slots", Tier::device, 0, page, 4}};
  std::vector<std::uint64_t> offsets;
  for (const Region& region : host_regions(plan)) offsets.push_back(region.offset);
  EXPECT_THAT(offsets, ElementsAre(0, 3 * page, 8 * page, 9 * page));
}

}  // namespace
}  // namespace strata
