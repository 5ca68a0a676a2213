#pragma once
// --dtype: what the weights of an export are written in.

#include <string>

#include "strata/core/dtype.hpp"

namespace strata {

DType parse_weight_dtype(const std::string& name);  // Throws ConfigError.

}  // namespace strata
