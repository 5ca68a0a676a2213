#include "train/save_cost.hpp"

#include <algorithm>
#include <numeric>

namespace strata {

void SaveCost::plain(double seconds) {
  if (plain_.size() == num_kept) plain_.erase(plain_.begin());
  plain_.push_back(seconds);
}

void SaveCost::begin() {
  meanwhile_.clear();
  usual_.reset();
  if (plain_.empty()) return;
  std::vector<double> sorted = plain_;
  std::ranges::sort(sorted);
  usual_ = sorted[sorted.size() / 2];
}

void SaveCost::meanwhile(double seconds) { meanwhile_.push_back(seconds); }

std::optional<SaveCost::Extra> SaveCost::extra() const {
  if (!usual_ || meanwhile_.empty()) return {};
  const double sum = std::accumulate(meanwhile_.begin(), meanwhile_.end(), 0.0);
  const auto steps = static_cast<std::int64_t>(meanwhile_.size());
  return Extra{steps, meanwhile_.front() - *usual_, sum - static_cast<double>(steps) * *usual_};
}

}  // namespace strata
