#include "topology/system_files.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "strata/core/bytes.hpp"

namespace strata {
namespace {

constexpr std::uint64_t ids_max = 1 << 16;  // more cores or nodes than any kernel has

void add_range(std::vector<int>& ids, std::string_view range) {
  const std::size_t dash = range.find('-');
  const auto first = parse_count(range.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_count(range.substr(dash + 1));
  if (!first || !last || *last >= ids_max) return;
  for (std::uint64_t id = *first; id <= *last; ++id) ids.push_back(static_cast<int>(id));
}

}  // namespace

std::string read_system_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

std::string read_system_line(const std::filesystem::path& path) {
  const std::string text = read_system_file(path);
  return std::string(trimmed(std::string_view(text).substr(0, text.find('\n'))));
}

std::optional<std::uint64_t> read_system_count(const std::filesystem::path& path) {
  return parse_count(read_system_line(path));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string field_of(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return std::string(trimmed(line.substr(name.size())));
  }
  return "";
}

std::uint64_t kib_field_of(const std::string& text, std::string_view name) {
  const auto words = words_of(field_of(text, name));
  return words.empty() ? 0 : parse_count(words[0]).value_or(0) * KiB;
}

std::string bracketed(const std::string& text) {
  const std::size_t open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return text.substr(open + 1, close - open - 1);
}

std::vector<int> parse_id_list(std::string_view text) {
  std::vector<int> ids;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    add_range(ids, trimmed(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return ids;
}

}  // namespace strata
