#include "weight_dtype.hpp"

#include <fmt/format.h>

#include "strata/core/error.hpp"

namespace strata {

DType parse_weight_dtype(const std::string& name) {
  if (name == "bf16") return DType::bf16;
  if (name == "f32" || name == "fp32") return DType::f32;
  throw ConfigError(fmt::format("--dtype {}: bf16 or fp32", name));
}

}  // namespace strata
