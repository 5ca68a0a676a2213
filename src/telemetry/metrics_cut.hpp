#pragma once
// What a run that goes on from a step does to the metrics of the run before it.

#include <cstdint>
#include <filesystem>

#include "strata/telemetry/progress.hpp"

namespace strata {

// Takes away the lines of steps after `step`, and what no longer is a whole line; the file is
// replaced at once. Nothing when there is no file. Returns the most that any line, also of those
// taken away, says was written. Throws SystemError.
WrittenBytes cut_metrics(const std::filesystem::path& metrics, std::int64_t step);

}  // namespace strata
