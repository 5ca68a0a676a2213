#include "train/step_gap.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace strata {
namespace {

class GapWalk {
 public:
  GapWalk(const Schedule& schedule, std::span<const OpTime> times)
      : schedule_(schedule), times_(times), predecessors_(schedule.ops.size()) {
    for (const auto& lane : schedule.lanes)
      for (std::size_t i = 1; i < lane.size(); ++i) predecessors_[lane[i].index()] = lane[i - 1];
  }

  // From the op's end back to `since`.
  void follow(OpId op, double since, StepGap& gap) const {
    double until = times_[op.index()].end;
    while (op.valid() && until > since) {
      const OpId cause = released_by(op);
      const double from = cause.valid() ? std::min(times_[cause.index()].end, until) : since;
      gap.lanes[static_cast<std::size_t>(schedule_.ops[op.index()].lane)] +=
          until - std::max(from, since);
      until = from;
      op = cause;
    }
  }

 private:
  OpId released_by(OpId id) const {
    const Op& op = schedule_.ops[id.index()];
    OpId last = completes_in_order(op.lane) ? predecessors_[id.index()] : OpId{};
    for (const Edge& edge : op.after) {
      if (edge.steps_back != 0) continue;
      if (!last.valid() || times_[edge.op.index()].end > times_[last.index()].end) last = edge.op;
    }
    return last;
  }

  const Schedule& schedule_;
  const std::span<const OpTime> times_;
  std::vector<OpId> predecessors_;  // on the lane, by OpId
};

double first_start(std::span<const OpTime> times) {
  return std::ranges::min_element(times, {}, &OpTime::start)->start;
}

double last_compute_end(const Schedule& schedule, std::span<const OpTime> times) {
  double end = -std::numeric_limits<double>::infinity();
  for (const OpId op : schedule.lanes[static_cast<std::size_t>(Lane::compute)])
    end = std::max(end, times[op.index()].end);
  return end;
}

}  // namespace

StepGap step_gap(const Schedule& schedule, std::span<const OpTime> before,
                 std::span<const OpTime> next) {
  StepGap gap;
  const auto report = std::ranges::find(schedule.ops, OpKind::report, &Op::kind);
  if (report == schedule.ops.end()) return gap;
  const double since = last_compute_end(schedule, before), begin = first_start(next);
  const double reported = before[report->id.index()].end;
  if (begin <= since) return gap;
  gap.loop = std::max(0.0, begin - std::max(since, reported));
  if (reported <= begin) GapWalk(schedule, before).follow(report->id, since, gap);
  return gap;
}

}  // namespace strata
