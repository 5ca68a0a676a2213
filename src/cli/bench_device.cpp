#include "cli/bench_device.hpp"

#include <fmt/format.h>

#include <charconv>

#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {

std::optional<int> parse_bench_device(const std::string& text) {
  if (text == "cpu" || text == "host") return std::nullopt;
  if (text == "gpu") return 0;
  if (text == "auto") return num_cuda_devices() > 0 ? std::optional(0) : std::nullopt;
  int ordinal = 0;
  const char* end = text.data() + text.size();
  const auto [at, failure] = std::from_chars(text.data(), end, ordinal);
  if (failure != std::errc() || at != end || ordinal < 0)
    throw ConfigError(
        fmt::format("--device {}: auto, gpu, cpu and the number of a GPU are possible", text));
  return ordinal;
}

}  // namespace strata
