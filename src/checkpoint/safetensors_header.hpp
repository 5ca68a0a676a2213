#pragma once
// The JSON header of a safetensors file: checked text to entries, and entries to canonical text.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "strata/checkpoint/safetensors.hpp"

namespace strata {

inline constexpr std::uint64_t safetensors_header_bytes_max = 100'000'000;

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // by offset
  std::map<std::string, std::string> metadata;
};

// Checks every rule of the format against the `data_bytes` that follow the header. Throws
// FormatError naming `source`.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                           const std::string& source);

// The header as the reference writer spells it: tensors in the given order, padded with spaces to 8
// bytes.
std::string safetensors_header_text(const std::vector<TensorEntry>& tensors);

}  // namespace strata
