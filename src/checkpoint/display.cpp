#include "display.hpp"

#include <nlohmann/json.hpp>

namespace strata {

std::string quote_name(std::string_view text) {
  constexpr std::size_t length_max = 120;
  using nlohmann::json;
  std::string safe = json(text).dump(-1, ' ', true, json::error_handler_t::replace);
  if (safe.size() > length_max) safe = safe.substr(0, length_max) + "...\"";
  return safe;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

}  // namespace strata
