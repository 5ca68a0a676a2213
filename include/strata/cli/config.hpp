#pragma once
// Reads a run's config: flat YAML (JSON is a subset) with the Hugging Face names plus `offload:`,
// and key=value overrides. Strict: an unknown key is an error with the nearest name, a known but
// unsupported one an error with the reason, and all errors are told at once. A DeepSpeed config may
// be the config, or be named in it by `deepspeed:`. Thread contract: pure but for that file.

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/train/run_config.hpp"

namespace strata {

// Overrides are "key=value" or "--key=value": "offload.optimizer.nvme=0.5" reaches nested keys.
// Throws ConfigError naming file, line and key.
RunConfig read_config(const std::filesystem::path& file, std::span<const std::string> overrides);
RunConfig parse_config(const std::string& yaml, const std::string& source_name,
                       std::span<const std::string> overrides);

// The resolved config as YAML, each line with its origin as a comment. Reading it back gives the
// same config.
std::string format_config(const RunConfig& config);

// docs/config.md: every key with default, type and meaning, from the table that the parser walks.
std::string config_reference_markdown();

// The closest of `known` by edit distance, or empty when none is near.
std::string nearest_name(std::string_view name, std::span<const std::string> known);

}  // namespace strata
