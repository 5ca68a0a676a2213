#pragma once
// The dtype that a config.json names, changed in place: every other byte stays as its author wrote
// it.

#include <string>
#include <string_view>

#include "strata/core/dtype.hpp"

namespace strata {

std::string_view hf_dtype_name(DType dtype);  // "bfloat16", "float16", "float32"

// `text` is valid JSON. Values of "dtype" and "torch_dtype" at its root become `name`; absent or
// null ones are left alone.
std::string with_config_dtype(const std::string& text, std::string_view name);

}  // namespace strata
