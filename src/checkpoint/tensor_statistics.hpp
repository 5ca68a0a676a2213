#pragma once
// What the elements of one stored tensor look like. Reads it in pieces.

#include <cstdint>
#include <span>

#include "strata/checkpoint/safetensors.hpp"

namespace strata {

struct TensorStatistics {
  std::int64_t num_finite = 0, num_non_finite = 0;
  double min = 0, max = 0, sum = 0;  // of the finite elements

  double mean() const { return num_finite == 0 ? 0 : sum / static_cast<double>(num_finite); }
  void add(std::span<const float> values);
};

// `tensor` must be F32, F16 or BF16.
TensorStatistics measure_tensor(const SafetensorsReader& reader, const TensorEntry& tensor);

}  // namespace strata
