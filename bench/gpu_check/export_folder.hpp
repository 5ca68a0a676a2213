#pragma once
// Where the weights that each run exports go: nobody reads them, and a disk would cost minutes.

#include <cstdint>
#include <filesystem>
#include <string>

#include "gpu_check/model_shape.hpp"

namespace strata {

// Below `memory`, a folder in memory, where there is one and that leaves the run enough; else below
// `disk`.
std::filesystem::path export_folder(const ModelShape& shape, const std::filesystem::path& memory,
                                    const std::filesystem::path& disk);

// The field of a /proc/meminfo, in bytes; 0: it is not told.
std::uint64_t meminfo_bytes(const std::string& meminfo, const std::string& field);

}  // namespace strata
