#pragma once
// Changes the weights that a model folder holds.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "strata/checkpoint/safetensors.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {

// Overwrites elements [first, first + count) of an fp32 tensor of the folder's only file.
inline void overwrite_weights(const std::filesystem::path& model, const std::string& name,
                              std::int64_t first, std::int64_t count, float value) {
  const auto path = model / "model.safetensors";
  const std::uint64_t begin = SafetensorsReader(path).find(name)->begin;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::uint64_t header_bytes = 0;
  file.read(reinterpret_cast<char*>(&header_bytes), sizeof header_bytes);
  file.seekp(static_cast<std::streamoff>(8 + header_bytes + begin +
                                         4 * static_cast<std::uint64_t>(first)));
  for (std::int64_t i = 0; i < count; ++i)
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  ensure(file.good());
}

}  // namespace strata::testing
