#pragma once
// The tensors of one or several safetensors files as a table with totals.

#include <cstdint>
#include <string>

#include "strata/checkpoint/inspect.hpp"
#include "strata/checkpoint/safetensors.hpp"
#include "strata/core/text_table.hpp"

namespace strata {

class TensorTable {
 public:
  explicit TensorTable(InspectStatistics statistics);

  void add(const SafetensorsReader& reader);
  std::int64_t num_non_finite() const { return num_non_finite_; }
  // The table, then "272 tensors, 134515008 elements, 257 MiB (269060552 bytes)".
  std::string text() const;

 private:
  void add_tensor(const SafetensorsReader& reader, const TensorEntry& tensor);
  std::vector<std::string> measured_cells(const SafetensorsReader& reader,
                                          const TensorEntry& tensor);

  InspectStatistics statistics_;
  TextTable table_;
  std::size_t num_tensors_ = 0;
  std::int64_t num_elements_ = 0, num_non_finite_ = 0;
  std::uint64_t num_bytes_ = 0;
};

}  // namespace strata
