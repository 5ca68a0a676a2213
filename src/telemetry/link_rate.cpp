#include "telemetry/link_rate.hpp"

#include <algorithm>
#include <limits>

namespace strata {

void LinkRate::add(std::int64_t start_ns, std::int64_t end_ns, std::uint64_t bytes) {
  if (end_ns <= start_ns) return;
  starts_.push_back({start_ns, static_cast<double>(bytes)});
  ends_.push_back({end_ns, static_cast<double>(bytes)});
}

std::vector<LinkRate::Gate> LinkRate::gates() const {
  std::vector<Mark> starts = starts_, ends = ends_;
  std::ranges::sort(starts, {}, &Mark::at_ns);
  std::ranges::sort(ends, {}, &Mark::at_ns);
  std::vector<Gate> gates;
  double begun = 0, ended = 0;
  std::size_t s = 0, e = 0;
  while (e < ends.size()) {  // The last event is an end.
    const std::int64_t at =
        s < starts.size() ? std::min(starts[s].at_ns, ends[e].at_ns) : ends[e].at_ns;
    while (e < ends.size() && ends[e].at_ns == at) ended += ends[e++].bytes;
    gates.push_back({at, ended, begun});
    while (s < starts.size() && starts[s].at_ns == at) begun += starts[s++].bytes;
  }
  return gates;
}

// A string pulled tight through the gates, up to where it next touches one: it is as straight as it
// can be, so no other way through is steeper at its steepest.
LinkRate::Bend LinkRate::next_bend(const std::vector<Gate>& gates, std::size_t from, double moved) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Bend slowest{from, moved, -infinity}, fastest{from, moved, infinity};
  for (std::size_t i = from + 1; i < gates.size(); ++i) {
    const double seconds = static_cast<double>(gates[i].at_ns - gates[from].at_ns) * 1e-9;
    const double least = (gates[i].ended - moved) / seconds;
    const double most = (gates[i].begun - moved) / seconds;
    if (least > fastest.bytes_per_s) return fastest;
    if (most < slowest.bytes_per_s) return slowest;
    if (least >= slowest.bytes_per_s) slowest = {i, gates[i].ended, least};
    if (most <= fastest.bytes_per_s) fastest = {i, gates[i].begun, most};
  }
  return slowest;  // At the last gate all has ended.
}

std::vector<LinkRate::Point> LinkRate::points() const {
  const std::vector<Gate> gates = this->gates();
  std::vector<Point> points;
  double moved = 0;
  for (std::size_t at = 0; at + 1 < gates.size();) {
    const Bend bend = next_bend(gates, at, moved);
    points.push_back({gates[at].at_ns, bend.bytes_per_s});
    at = bend.gate, moved = bend.moved;
  }
  if (!gates.empty()) points.push_back({gates.back().at_ns, 0});
  return points;
}

}  // namespace strata
