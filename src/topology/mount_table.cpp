#include "topology/mount_table.hpp"

#include <algorithm>
#include <sstream>

#include "topology/system_files.hpp"

namespace strata {
namespace {

bool is_octal(char c) { return c >= '0' && c <= '7'; }

bool is_escape(const std::string& text, std::size_t at) {
  return text[at] == '\\' && at + 3 < text.size() && is_octal(text[at + 1]) &&
         is_octal(text[at + 2]) && is_octal(text[at + 3]);
}

// Blanks and backslashes in names are written "\040".
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_escape(text, at)) {
      plain += text[at];
      continue;
    }
    plain += static_cast<char>((text[at + 1] - '0') * 64 + (text[at + 2] - '0') * 8 +
                               (text[at + 3] - '0'));
    at += 3;
  }
  return plain;
}

// "36 35 98:0 /root /mnt rw,noatime shared:1 - ext3 /dev/root rw": some words, any number of
// optional ones, "-", three more.
std::optional<Mount> parse_mount(const std::string& line) {
  const std::vector<std::string> words = words_of(line);
  if (words.size() < 8) return std::nullopt;
  const auto dash = std::find(words.begin() + 6, words.end(), "-");
  const auto id = parse_count(words[0]);
  if (!id || words.end() - dash < 3) return std::nullopt;
  return Mount{*id, words[2], unescaped(words[4]), words[5], dash[1], unescaped(dash[2])};
}

bool holds(const Mount& mount, const std::string& path) {
  const std::string& point = mount.mount_point;
  if (point == "/" || path == point) return true;
  return path.starts_with(point) && path[point.size()] == '/';
}

}  // namespace

std::vector<Mount> parse_mounts(const std::string& mountinfo) {
  std::vector<Mount> mounts;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    if (auto mount = parse_mount(line)) mounts.push_back(std::move(*mount));
  }
  return mounts;
}

const Mount* find_mount(std::span<const Mount> mounts, const std::string& path,
                        std::optional<std::uint64_t> id) {
  const Mount* found = nullptr;
  for (const Mount& mount : mounts) {
    if (id && mount.id == *id) return &mount;
    if (!holds(mount, path)) continue;
    if (found == nullptr || mount.mount_point.size() >= found->mount_point.size()) found = &mount;
  }
  return found;
}

}  // namespace strata
