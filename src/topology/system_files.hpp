#pragma once
// Small text files of /proc and /sys. What is missing, unreadable or no number is nothing: these
// files differ between kernels, and containers hide them. Thread contract: pure but for the reads.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

// Where the two are mounted; tests have their own.
struct SystemRoots {
  std::filesystem::path proc = "/proc", sys = "/sys";
};

std::string read_system_file(const std::filesystem::path& path);  // the whole of it
std::string read_system_line(const std::filesystem::path& path);  // the first line, trimmed
std::optional<std::uint64_t> read_system_count(const std::filesystem::path& path);

std::string_view trimmed(std::string_view text);
std::vector<std::string> words_of(const std::string& text);
std::optional<std::uint64_t> parse_count(std::string_view text);  // a number, and nothing after it
// "MemTotal: 4 kB", "CapEff:\t1f": what follows `name` on its line, trimmed.
std::string field_of(const std::string& text, std::string_view name);
// "MemTotal:  4 kB" is 4096; 0 when there is no such line.
std::uint64_t kib_field_of(const std::string& text, std::string_view name);
// What is chosen of "always [madvise] never"; empty when nothing stands in brackets.
std::string bracketed(const std::string& text);
// "0-3,8" is 0 1 2 3 8.
std::vector<int> parse_id_list(std::string_view text);

}  // namespace strata
