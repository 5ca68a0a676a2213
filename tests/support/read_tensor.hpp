#pragma once
// Tensors of a golden safetensors file.

#include <span>
#include <string>
#include <vector>

#include "strata/checkpoint/safetensors.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {

inline std::vector<float> read_tensor(const SafetensorsReader& file, const std::string& name) {
  const TensorEntry* entry = file.find(name);
  ensure(entry != nullptr && entry->dtype == DType::f32);
  std::vector<float> values(static_cast<std::size_t>(entry->count()));
  file.read(*entry, 0, entry->count(), std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace strata::testing
