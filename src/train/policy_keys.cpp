#include "train/policy_keys.hpp"

#include <fmt/format.h>

namespace strata {

std::string_view update_order_key(UpdateOrder order) {
  switch (order) {
    case UpdateOrder::after_backward:
      return "after_backward";
    case UpdateOrder::deferred:
      return "deferred";
    case UpdateOrder::during_backward:
      return "during_backward";
  }
  return "auto";
}

std::string fractions_value(const TierFractions& fractions) {
  // The shortest digits that mean the same double; 0.0 + drops a zero's sign.
  return fmt::format("{{gpu: {}, cpu: {}, nvme: {}}}", 0.0 + fractions.device, 0.0 + fractions.host,
                     0.0 + fractions.nvme);
}

std::string weights_value(const std::vector<double>& weights) {
  std::string text;
  for (const double weight : weights) text += fmt::format("{}{}", text.empty() ? "" : ", ", weight);
  return "[" + text + "]";
}

}  // namespace strata
