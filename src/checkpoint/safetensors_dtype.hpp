#pragma once
// The element types of the safetensors format: their names, sizes and which of them Strata can
// hold.

#include <optional>
#include <string_view>

#include "strata/core/dtype.hpp"

namespace strata {

struct SafetensorsDType {
  std::string_view name;  // "BF16"
  int bits = 0;
  std::optional<DType> dtype;
};

const SafetensorsDType* find_safetensors_dtype(std::string_view name);  // Null when unknown.
std::string_view safetensors_name(DType dtype);
// Where the reference writer places a type in a file: higher ranks first, so that wide types stay
// aligned.
int safetensors_rank(DType dtype);
// The types that may be weights: F32, F16, BF16.
bool is_weight_dtype(DType dtype);

}  // namespace strata
