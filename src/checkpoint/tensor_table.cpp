#include "tensor_table.hpp"

#include <fmt/format.h>

#include "display.hpp"
#include "safetensors_dtype.hpp"
#include "strata/core/bytes.hpp"
#include "tensor_statistics.hpp"

namespace strata {
namespace {

using Align = TextTable::Align;

std::vector<TextTable::Column> columns(InspectStatistics statistics) {
  std::vector<TextTable::Column> columns{
      {"tensor"}, {"dtype"}, {"shape"}, {"bytes", Align::right}, {"size", Align::right}};
  if (statistics == InspectStatistics::none) return columns;
  for (const char* title : {"min", "max", "mean", "non-finite"}) {
    columns.push_back({title, Align::right});
  }
  return columns;
}

// Names are plain as a rule; only those that could disturb a terminal are shown quoted.
std::string shown(const std::string& name) {
  const std::string safe = quote_name(name);
  return safe == '"' + name + '"' ? name : safe;
}

}  // namespace

TensorTable::TensorTable(InspectStatistics statistics)
    : statistics_(statistics), table_(columns(statistics)) {}

void TensorTable::add(const SafetensorsReader& reader) {
  for (const TensorEntry& tensor : reader.tensors()) add_tensor(reader, tensor);
}

void TensorTable::add_tensor(const SafetensorsReader& reader, const TensorEntry& tensor) {
  const std::uint64_t bytes = tensor.end - tensor.begin;
  std::vector<std::string> cells{shown(tensor.name), tensor.dtype_text, shape_text(tensor.shape),
                                 std::to_string(bytes), format_bytes(bytes)};
  if (statistics_ == InspectStatistics::per_tensor) {
    for (std::string& cell : measured_cells(reader, tensor)) cells.push_back(std::move(cell));
  }
  table_.add_row(std::move(cells));
  ++num_tensors_;
  num_elements_ += tensor.count();
  num_bytes_ += bytes;
}

std::vector<std::string> TensorTable::measured_cells(const SafetensorsReader& reader,
                                                     const TensorEntry& tensor) {
  if (!tensor.dtype || !is_weight_dtype(*tensor.dtype)) return {"-", "-", "-", "-"};
  const TensorStatistics measured = measure_tensor(reader, tensor);
  num_non_finite_ += measured.num_non_finite;
  const std::string bad = std::to_string(measured.num_non_finite);
  if (measured.num_finite == 0) return {"-", "-", "-", bad};
  return {fmt::format("{:.6g}", measured.min), fmt::format("{:.6g}", measured.max),
          fmt::format("{:.6g}", measured.mean()), bad};
}

std::string TensorTable::text() const {
  return table_.text() + fmt::format("{} tensors, {} elements, {} ({} bytes)\n", num_tensors_,
                                     num_elements_, format_bytes(num_bytes_), num_bytes_);
}

}  // namespace strata
