#include "tensor_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "elements.hpp"
#include "strata/core/error.hpp"

namespace strata {

void TensorStatistics::add(std::span<const float> values) {
  for (const double value : values) {
    if (!std::isfinite(value)) {
      ++num_non_finite;
      continue;
    }
    min = num_finite == 0 ? value : std::min(min, value);
    max = num_finite == 0 ? value : std::max(max, value);
    sum += value;
    ++num_finite;
  }
}

TensorStatistics measure_tensor(const SafetensorsReader& reader, const TensorEntry& tensor) {
  constexpr std::int64_t chunk_elements = 256 * 1024;
  ensure(tensor.dtype.has_value());
  const std::int64_t count = tensor.count(), width = dtype_bytes(*tensor.dtype);
  std::vector<float> values(static_cast<std::size_t>(std::min(count, chunk_elements)));
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(width));
  TensorStatistics statistics;
  for (std::int64_t first = 0; first < count; first += chunk_elements) {
    const auto piece = static_cast<std::size_t>(std::min(chunk_elements, count - first));
    const auto stored = std::span(bytes).first(piece * static_cast<std::size_t>(width));
    reader.read(tensor, first, static_cast<std::int64_t>(piece), stored);
    to_f32(stored, *tensor.dtype, std::span(values).first(piece));
    statistics.add(std::span(values).first(piece));
  }
  return statistics;
}

}  // namespace strata
