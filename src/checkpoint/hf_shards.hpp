#pragma once
// The safetensors files of a model folder, opened and cross-checked with their index.

#include <filesystem>
#include <vector>

#include "strata/checkpoint/safetensors.hpp"

namespace strata {

// model.safetensors, or the files that model.safetensors.index.json names. Throws FormatError when
// index and files contradict each other or a tensor is in two files; ConfigError when the folder
// holds no weights.
std::vector<SafetensorsReader> open_hf_shards(const std::filesystem::path& folder);

}  // namespace strata
