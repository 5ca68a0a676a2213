#include "group_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace strata {
namespace {

constexpr std::size_t bytes_before = 60, bytes_shown = 160;

std::string escaped(char c) {
  if (c == '\n') return "\\n";
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte != 0x7f && byte < 0x80) return std::string(1, c);
  return fmt::format("\\x{:02x}", byte);
}

}  // namespace

std::string excerpt(std::string_view text, std::size_t at) {
  const std::size_t begin = at > bytes_before ? std::min(at - bytes_before, text.size()) : 0;
  const std::size_t size = std::min(bytes_shown, text.size() - begin);
  std::string shown = begin > 0 ? "..." : "";
  for (char c : text.substr(begin, size)) shown += escaped(c);
  return begin + size < text.size() ? shown + "..." : shown;
}

std::string describe_difference(const std::string& name, std::string_view text,
                                const std::string& other_name, std::string_view other_text) {
  const auto [left, right] = std::ranges::mismatch(text, other_text);
  const auto at = static_cast<std::size_t>(left - text.begin());
  return fmt::format("{} has \"{}\" where {} has \"{}\"", name, excerpt(text, at), other_name,
                     excerpt(other_text, at));
}

}  // namespace strata
