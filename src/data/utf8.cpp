#include "data/utf8.hpp"

#include <fmt/format.h>

#include <array>

namespace strata {
namespace {

// Number of bytes that the lead byte announces; 0 when it is no lead byte.
std::size_t announced_bytes(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  if (lead >= 0xf0 && lead < 0xf5) return 4;
  return 0;
}

bool is_character(char32_t value, std::size_t bytes) {
  constexpr std::array<char32_t, 5> smallest = {0, 0, 0x80, 0x800, 0x10000};
  return value >= smallest[bytes] && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff);
}

// C0, DEL and C1, and the marks that turn the direction of writing around.
bool is_unsafe(char32_t value) {
  if (value == '\n' || value == '\t') return false;
  return value < 0x20 || (value >= 0x7f && value < 0xa0) || (value >= 0x202a && value <= 0x202e) ||
         (value >= 0x2066 && value <= 0x2069);
}

std::string escaped(std::string_view bytes) {
  std::string text;
  for (char c : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
}

}  // namespace

Utf8Character next_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t bytes = announced_bytes(lead);
  if (bytes == 1) return {lead, 1, true};
  if (bytes == 0 || bytes > text.size()) return {};
  char32_t value = lead & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0u) != 0x80u) return {};
    value = value << 6 | (next & 0x3fu);
  }
  if (!is_character(value, bytes)) return {};
  return {value, bytes, true};
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Utf8Character next = next_character(text);
    const std::string_view bytes = text.substr(0, next.bytes);
    result += next.valid && !is_unsafe(next.value) ? std::string(bytes) : escaped(bytes);
    text.remove_prefix(next.bytes);
  }
  return result;
}

}  // namespace strata
