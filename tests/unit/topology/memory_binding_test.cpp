#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "src/topology/hwloc_handle.hpp"
#include "strata/topology/binding.hpp"
#include "strata/topology/topology.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t bytes = 1 << 20;

class MappedMemory {
 public:
  MappedMemory()
      : data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory() { ::munmap(data_, bytes); }
  std::span<std::byte> span() const { return {static_cast<std::byte*>(data_), bytes}; }

 private:
  void* data_;
};

TEST(PlacedMemory, LiesOnItsNodeOnceItIsTouched) {
  const MappedMemory memory;
  const int node = read_topology().nodes.back().id;
  const std::string refusal = place_memory_on_node(memory.span(), node);
  if (!refusal.empty()) GTEST_SKIP() << refusal;
  std::memset(memory.span().data(), 1, bytes);
  const HwlocBitmap found = make_bitmap();
  if (hwloc_get_area_memlocation(shared_hwloc(), memory.span().data(), bytes, found.get(),
                                 HWLOC_MEMBIND_BYNODESET) != 0)
    GTEST_SKIP() << "the system does not tell where memory lies";
  EXPECT_TRUE(hwloc_bitmap_isset(found.get(), static_cast<unsigned>(node)));
  EXPECT_EQ(hwloc_bitmap_weight(found.get()), 1);
}

TEST(PlacedMemory, IsRefusedOnANodeThatIsNone) {
  const MappedMemory memory;
  EXPECT_THAT(place_memory_on_node(memory.span(), -1), HasSubstr("-1"));
  EXPECT_THAT(place_memory_on_node(memory.span(), 999), HasSubstr("999"));
}

}  // namespace
}  // namespace strata
