#include "telemetry/link_rate.hpp"

#include <algorithm>

namespace strata {

void LinkRate::add(std::int64_t start_ns, std::int64_t end_ns, std::uint64_t bytes) {
  if (end_ns <= start_ns) return;
  const double rate = static_cast<double>(bytes) / (static_cast<double>(end_ns - start_ns) * 1e-9);
  changes_.push_back({start_ns, rate, +1});
  changes_.push_back({end_ns, -rate, -1});
}

std::vector<LinkRate::Point> LinkRate::points() const {
  std::vector<Change> sorted = changes_;
  std::ranges::sort(sorted, {}, &Change::at_ns);
  std::vector<Point> points;
  double rate = 0;
  int transfers = 0;
  for (const Change& change : sorted) {
    transfers += change.transfers;
    rate = transfers == 0 ? 0 : rate + change.bytes_per_s;  // Rounding does not add up.
    if (!points.empty() && points.back().at_ns == change.at_ns)
      points.back().bytes_per_s = rate;
    else
      points.push_back({change.at_ns, rate});
  }
  return points;
}

}  // namespace strata
