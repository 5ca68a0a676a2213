#pragma once
// Peaks that are printed on the box, by the name that CUDA gives. Thread contract: pure.

#include <optional>
#include <string_view>

namespace strata {

struct KnownPeak {
  double flops_per_s = 0;  // dense bf16, sums in fp32
  std::string_view source;
};

// None for a device that is not in our table.
std::optional<KnownPeak> known_peak(std::string_view device_name);

}  // namespace strata
