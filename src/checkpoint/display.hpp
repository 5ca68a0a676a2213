#pragma once
// Things from outside as text that is safe and short enough for a message.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

// Escaped, quoted and cut at 120 characters.
std::string quote_name(std::string_view text);
std::string shape_text(const std::vector<std::int64_t>& shape);  // "[49152, 576]"

}  // namespace strata
