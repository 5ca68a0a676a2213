#include <algorithm>

#include "strata/telemetry/roofline.hpp"

namespace strata {
namespace {

template <typename Get>
double median_of(const std::vector<StepUse>& steps, Get get) {
  std::vector<double> values;
  values.reserve(steps.size());
  for (const StepUse& step : steps) values.push_back(get(step));
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

void UseHistory::add(const StepUse& use) {
  if (seen_++ % stride_ != 0) return;
  if (steps_.size() >= steps_max_) {
    for (std::size_t i = 0; 2 * i < steps_.size(); ++i) steps_[i] = steps_[2 * i];
    steps_.resize((steps_.size() + 1) / 2);
    stride_ *= 2;
    if ((seen_ - 1) % stride_ != 0) return;
  }
  steps_.push_back(use);
}

StepUse UseHistory::median() const {
  StepUse median;
  if (steps_.empty()) return median;
  median.seconds = median_of(steps_, [](const StepUse& use) { return use.seconds; });
  median.loop = median_of(steps_, [](const StepUse& use) { return use.loop; });
  for (std::size_t i = 0; i < num_resources; ++i) {
    median.busy[i] = median_of(steps_, [i](const StepUse& use) { return use.busy[i]; });
    median.transfer[i] = median_of(steps_, [i](const StepUse& use) { return use.transfer[i]; });
    median.waits[i] = median_of(steps_, [i](const StepUse& use) { return use.waits[i]; });
  }
  return median;
}

}  // namespace strata
