#include "measure/report_units.hpp"

#include <fmt/format.h>

#include "strata/core/digits.hpp"

namespace strata {

std::string with_range(const Samples& samples, double unit) {
  if (samples.empty()) return "-";
  return fmt::format("{} ({}-{})", three_digits(samples.median() / unit),
                     three_digits(samples.min() / unit), three_digits(samples.max() / unit));
}

}  // namespace strata
