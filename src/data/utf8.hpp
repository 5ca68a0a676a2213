#pragma once
// Reading UTF-8 one character at a time, and showing bytes that are none.

#include <cstddef>
#include <string>
#include <string_view>

namespace strata {

struct Utf8Character {
  char32_t value = 0;
  std::size_t bytes = 1;
  bool valid = false;
};

// The first character of a non-empty text. Overlong forms, surrogates and cut characters are one
// invalid byte.
Utf8Character next_character(std::string_view text);

// Safe for a terminal: control characters other than newline and tab, and bytes that are no UTF-8,
// become \xNN.
std::string printable(std::string_view text);

}  // namespace strata
