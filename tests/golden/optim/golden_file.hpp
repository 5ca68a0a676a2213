#pragma once
// Tensors of a golden safetensors file as doubles.

#include <filesystem>
#include <string>
#include <vector>

#include "strata/checkpoint/safetensors.hpp"
#include "strata/core/error.hpp"
#include "support/source_dir.hpp"

namespace strata::testing {

class GoldenFile {
 public:
  explicit GoldenFile(const std::string& name)
      : reader_(source_dir() / "tests/golden/optim" / name) {}

  std::vector<double> read(const std::string& name) const {
    const TensorEntry* entry = reader_.find(name);
    ensure(entry != nullptr);
    return entry->dtype == DType::f64 ? read_as<double>(*entry) : read_as<float>(*entry);
  }
  // The tensors' names up to the last dot.
  std::vector<std::string> cases() const {
    std::vector<std::string> names;
    for (const TensorEntry& entry : reader_.tensors())
      if (entry.name.ends_with(".options"))
        names.push_back(entry.name.substr(0, entry.name.rfind('.')));
    return names;
  }

 private:
  template <typename T>
  std::vector<double> read_as(const TensorEntry& entry) const {
    std::vector<T> values(static_cast<std::size_t>(entry.count()));
    reader_.read(entry, 0, entry.count(), std::as_writable_bytes(std::span(values)));
    return {values.begin(), values.end()};
  }
  SafetensorsReader reader_;
};

}  // namespace strata::testing
