#include "plan/verify_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "plan/interval_map.hpp"

namespace strata {
namespace {

constexpr int steps_checked = 3;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

// Ops of three steps as one sequence; number = step * num_ops + id.
class OrderCheck {
 public:
  OrderCheck(const Schedule& schedule, std::vector<Violation>& found)
      : schedule_(schedule),
        found_(found),
        num_ops_(static_cast<std::int64_t>(schedule.ops.size())) {}

  void run() {
    if (!edges_point_back()) return;
    compute_clocks();
    compute_followers();
    check_conflicts();
    if (schedule_.end == StepEnd::barrier) check_barrier();
  }

 private:
  using Clock = std::array<std::int64_t, num_lanes>;

  const Op& op(std::int64_t number) const {
    return schedule_.ops[static_cast<std::size_t>(number % num_ops_)];
  }
  static std::size_t lane_of(const Op& o) { return static_cast<std::size_t>(o.lane); }

  // An op may only wait for earlier ones; with that there is no cycle, and the order of emission is
  // itself legal.
  bool edges_point_back() {
    for (const Op& o : schedule_.ops)
      for (const Edge& edge : o.after) {
        const bool known = edge.op.value >= 0 && edge.op.value < num_ops_;
        const bool back = edge.steps_back == 1 || (edge.steps_back == 0 && edge.op < o.id);
        if (known && back) continue;
        complain(fmt::format("op {} waits for op {} of {} steps back: a cycle", o.id.value,
                             edge.op.value, edge.steps_back));
        return false;
      }
    return true;
  }

  template <typename Visit>
  void for_each_edge(std::int64_t number, Visit visit) const {
    for (const Edge& edge : op(number).after) {
      const std::int64_t from =
          number - number % num_ops_ - edge.steps_back * num_ops_ + edge.op.value;
      if (from >= 0) visit(from);
    }
  }

  // started_[n][lane]: the last op of that in-order lane known complete when n starts.
  void compute_clocks() {
    const std::int64_t total = steps_checked * num_ops_;
    started_.assign(static_cast<std::size_t>(total), Clock{});
    std::array<Clock, num_lanes> lane_start;
    for (Clock& clock : lane_start) clock.fill(-1);
    std::array<std::int64_t, num_lanes> lane_last;
    lane_last.fill(-1);
    for (std::int64_t n = 0; n < total; ++n) {
      const std::size_t lane = lane_of(op(n));
      Clock clock = lane_start[lane];
      if (completes_in_order(op(n).lane)) clock[lane] = lane_last[lane];
      for_each_edge(n, [&](std::int64_t from) { merge(clock, from); });
      started_[static_cast<std::size_t>(n)] = clock;
      lane_start[lane] = clock;
      lane_last[lane] = n;
    }
  }

  void merge(Clock& clock, std::int64_t from) const {
    const Clock& other = started_[static_cast<std::size_t>(from)];
    for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
    if (completes_in_order(op(from).lane)) {
      auto& mine = clock[lane_of(op(from))];
      mine = std::max(mine, from);
    }
  }

  // followers_[n][lane]: the first op of that in-order lane that starts only after n is complete.
  void compute_followers() {
    const std::int64_t total = steps_checked * num_ops_;
    followers_.assign(static_cast<std::size_t>(total), Clock{});
    for (Clock& clock : followers_) clock.fill(never);
    for (std::int64_t n = total - 1; n >= 0; --n)
      for_each_edge(n, [&](std::int64_t from) {
        Clock& mine = followers_[static_cast<std::size_t>(from)];
        const Clock& later = followers_[static_cast<std::size_t>(n)];
        for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = std::min(mine[i], later[i]);
        if (completes_in_order(op(n).lane)) {
          auto& first = mine[lane_of(op(n))];
          first = std::min(first, n);
        }
      });
  }

  bool ordered(std::int64_t before, std::int64_t after) const {
    const Clock& start = started_[static_cast<std::size_t>(after)];
    if (completes_in_order(op(before).lane)) return start[lane_of(op(before))] >= before;
    const Clock& follow = followers_[static_cast<std::size_t>(before)];
    for (std::size_t lane = 0; lane < start.size(); ++lane) {
      if (follow[lane] != never && start[lane] >= follow[lane]) return true;
      if (follow[lane] == after) return true;
    }
    bool direct = false;
    for_each_edge(after, [&](std::int64_t from) { direct |= from == before; });
    return direct;
  }

  struct Toucher {
    std::int64_t writer = -1;
    std::vector<std::int64_t> readers;
  };

  void check_conflicts() {
    for (std::int64_t n = 0; n < steps_checked * num_ops_; ++n)
      for (const Operand& operand : op(n).operands) check_operand(n, operand);
  }

  void check_operand(std::int64_t n, const Operand& operand) {
    const bool writes = operand.access != Access::read;
    touched_.for_each(operand.region, [&](Toucher& t) {
      if (t.writer >= 0 && t.writer != n) require(t.writer, n, operand);
      if (writes)
        for (std::int64_t reader : t.readers)
          if (reader != n) require(reader, n, operand);
      if (!writes) t.readers.push_back(n);
    });
    if (writes) touched_.assign(operand.region, Toucher{n, {}});
  }

  void require(std::int64_t before, std::int64_t after, const Operand& operand) {
    if (ordered(before, after)) return;
    complain(
        fmt::format("op {} ({} on {}) of step {} and op {} ({} on {}) of step {} both touch {} "
                    "bytes [{}, {}) and "
                    "nothing orders them",
                    op(before).id.value, op_kind_name(op(before).kind), lane_name(op(before).lane),
                    before / num_ops_, op(after).id.value, op_kind_name(op(after).kind),
                    lane_name(op(after).lane), after / num_ops_, tier_name(operand.region.tier),
                    operand.region.offset, operand.region.end()));
  }

  // The last op of a step closes it: it waits for all writes and the end of every lane, and every
  // lane waits for it.
  void check_barrier() {
    const Op& last = schedule_.ops.back();
    for (const Op& o : schedule_.ops) {
      const auto& lane = schedule_.lanes[lane_of(o)];
      const bool must_be_done = o.kind == OpKind::write || o.id == lane.back();
      if (must_be_done && o.id != last.id)
        require_in_each_step(o, last, 0, "ends before all of it is complete");
      if (o.id == lane.front())
        require_in_each_step(last, o, 1, "begins before the one before has ended");
    }
  }

  void require_in_each_step(const Op& before, const Op& after, std::int64_t apart,
                            const std::string& why) {
    for (std::int64_t step = apart; step < steps_checked; ++step) {
      if (ordered((step - apart) * num_ops_ + before.id.value, step * num_ops_ + after.id.value))
        continue;
      return complain(fmt::format(
          "op {} ({} on {}) does not wait for op {} ({} on {}): updates were to come after "
          "backward, and a step {}",
          after.id.value, op_kind_name(after.kind), lane_name(after.lane), before.id.value,
          op_kind_name(before.kind), lane_name(before.lane), why));
    }
  }

  void complain(std::string what) {
    if (found_.size() < 20) found_.push_back({std::move(what)});
  }

  const Schedule& schedule_;
  std::vector<Violation>& found_;
  std::int64_t num_ops_;
  std::vector<Clock> started_, followers_;
  IntervalMap<Toucher> touched_;
};

}  // namespace

void verify_order(const Schedule& schedule, std::vector<Violation>& found) {
  if (!schedule.ops.empty()) OrderCheck(schedule, found).run();
}

}  // namespace strata
