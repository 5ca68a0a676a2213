#include "src/measure/page_backing.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "strata/core/bytes.hpp"

namespace strata {
namespace {

std::uint64_t small_page() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

std::string mapping(const std::string& range, std::uint64_t huge_kb) {
  return range +
         " rw-p 00000000 00:00 0 \nSize:               8192 kB\nKernelPageSize:        4 kB\n" +
         "Rss:                8192 kB\nAnonHugePages:      " + std::to_string(huge_kb) +
         " kB\nVmFlags: rd wr mr mw me ac sd hg \n";
}

constexpr std::uint64_t begin = 0x7f0000000000, end = begin + 8 * MiB;

TEST(PagesBehind, AreHugeWhenNearlyAllOfTheMappingIs) {
  const std::string map = mapping("7f0000000000-7f0000800000", 8192);
  EXPECT_EQ(page_bytes_in_smaps(map, begin, end), 2 * MiB);
}

TEST(PagesBehind, AreSmallWhenAGoodPartIsNotHuge) {
  const std::string map = mapping("7f0000000000-7f0000800000", 6144);
  EXPECT_EQ(page_bytes_in_smaps(map, begin, end), small_page());
}

TEST(PagesBehind, AreThoseOfTheMappingAskedAboutOnly) {
  const std::string maps = mapping("7e0000000000-7e0000800000", 8192) +
                           mapping("7f0000000000-7f0000800000", 0) +
                           mapping("7f0000800000-7f0001000000", 8192);
  EXPECT_EQ(page_bytes_in_smaps(maps, begin, end), small_page());
  EXPECT_EQ(page_bytes_in_smaps(maps, end, end + 8 * MiB), 2 * MiB);
}

TEST(PagesBehind, AreSmallWhereNothingIsKnown) {
  EXPECT_EQ(page_bytes_in_smaps("", begin, end), small_page());
}

TEST(PagesBehind, AreReadOfThisProcess) {
  void* memory =
      ::mmap(nullptr, 4 * MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ::madvise(memory, 4 * MiB, MADV_NOHUGEPAGE);
  std::memset(memory, 1, 4 * MiB);
  EXPECT_EQ(page_bytes_behind({static_cast<std::byte*>(memory), 4 * MiB}), small_page());
  ::munmap(memory, 4 * MiB);
}

}  // namespace
}  // namespace strata
