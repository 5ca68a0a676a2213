#include "page_backing.hpp"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "strata/core/bytes.hpp"

namespace strata {
namespace {

constexpr std::uint64_t huge_page_bytes = 2 * MiB;
constexpr double huge_share_min = 0.9;

struct MappedRange {
  std::uint64_t begin = 0, end = 0;
};

// "7f2b00000000-7f2b10000000 rw-p 00000000 00:00 0"
bool parse_range(const std::string& line, MappedRange& range) {
  unsigned long begin = 0, end = 0;
  if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) != 2) return false;
  range = {begin, end};
  return true;
}

// "AnonHugePages:    262144 kB", in bytes; 0 for any other field.
std::uint64_t field_bytes(const std::string& line, std::string_view name) {
  std::istringstream words(line);
  std::string key;
  std::uint64_t value = 0;
  words >> key >> value;
  return key == name ? value * KiB : 0;
}

std::uint64_t base_page_bytes() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

std::uint64_t page_bytes_in_smaps(const std::string& smaps, std::uint64_t begin,
                                  std::uint64_t end) {
  std::uint64_t huge = 0, mapped = 0;
  bool overlaps = false;
  std::istringstream lines(smaps);
  for (std::string line; std::getline(lines, line);) {
    if (MappedRange range; parse_range(line, range)) {
      overlaps = range.begin < end && begin < range.end;
      mapped += overlaps ? range.end - range.begin : 0;
    } else if (overlaps) {
      huge += field_bytes(line, "AnonHugePages:") + field_bytes(line, "Private_Hugetlb:");
    }
  }
  const bool is_huge =
      mapped > 0 && static_cast<double>(huge) >= huge_share_min * static_cast<double>(mapped);
  return is_huge ? huge_page_bytes : base_page_bytes();
}

std::uint64_t page_bytes_behind(std::span<const std::byte> memory) {
  std::ifstream file("/proc/self/smaps");
  std::ostringstream text;
  if (file) text << file.rdbuf();
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  return page_bytes_in_smaps(text.str(), begin, begin + memory.size());
}

}  // namespace strata
