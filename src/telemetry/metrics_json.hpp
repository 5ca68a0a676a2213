#pragma once
// The objects of metrics.jsonl, one per line, under the names that the field's tools use. Always
// valid JSON: a number that is not finite is written as null, and "non_finite" names it with what
// it was.

#include <cstdint>
#include <string>

#include "strata/telemetry/progress.hpp"

namespace strata {

// Of WrittenBytes, wherever they stand.
inline constexpr const char* nvme_written_key = "offload/nvme_bytes_written_total";
inline constexpr const char* checkpoints_written_key = "checkpoint_bytes_written_total";

std::string step_json(const StepReport& report);
std::string evaluation_json(std::int64_t step, double loss, std::int64_t tokens);
std::string saved_json(const SaveReport& report);
std::string event_json(const std::string& name, const std::string& text);

}  // namespace strata
