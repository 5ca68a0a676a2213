#pragma once
// What a safetensors file or a model folder holds, as text for people. Names from the files are
// escaped. Thread contract: any thread.

#include <cstdint>
#include <filesystem>
#include <string>

namespace strata {

// per_tensor reads all data: minimum, maximum, mean and the number of non-finite elements of every
// F32, F16 and BF16 tensor.
enum class InspectStatistics : std::uint8_t { none, per_tensor };

// A table of tensors with totals. Throws FormatError, SystemError: a broken file shows nothing it
// merely claims.
std::string inspect_safetensors(const std::filesystem::path& path,
                                InspectStatistics statistics = InspectStatistics::none);

// Config summary, parameters, files, tensors, and checks, each "ok" or "FAILED: why". Throws only
// when there is no folder.
std::string inspect_model_folder(const std::filesystem::path& folder,
                                 InspectStatistics statistics = InspectStatistics::none);

}  // namespace strata
