#pragma once
// Which device a benchmark measures: `auto`, `cpu` (also `host`), `gpu`, or the number of a GPU.

#include <optional>
#include <string>

namespace strata {

inline constexpr const char* bench_device_help =
    "gpu, the number of a GPU, or cpu: the host standing in for one";

// The GPU's ordinal; none: the host stands in. `auto` is the first GPU where there is one. Throws
// ConfigError.
std::optional<int> parse_bench_device(const std::string& text);

}  // namespace strata
