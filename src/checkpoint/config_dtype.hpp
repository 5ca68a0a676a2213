#pragma once
// The dtype that a config.json names, changed in place: every other byte stays as its author wrote
// it.

#include <cstdint>
#include <string>
#include <string_view>

#include "strata/core/bytes.hpp"
#include "strata/core/dtype.hpp"

namespace strata {

constexpr std::uint64_t config_bytes_max = 4 * MiB;  // of a config.json that is read

std::string_view hf_dtype_name(DType dtype);  // "bfloat16", "float16", "float32"

// `text` is valid JSON. Values of "dtype" and "torch_dtype" at its root become `name`; absent or
// null ones are left alone.
std::string with_config_dtype(const std::string& text, std::string_view name);

}  // namespace strata
