// Edges from regions: who wrote these bytes last, and who has read them since.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "plan/interval_map.hpp"
#include "strata/core/error.hpp"
#include "strata/plan/plan.hpp"

namespace strata {
namespace {

// Ops are numbered over two steps: number = step * num_ops + position in emission order.
using OpNumber = std::int64_t;
constexpr OpNumber none = -1;

struct Toucher {
  OpNumber writer = none;
  std::vector<OpNumber> readers;  // since the last write
};

class Scoreboard {
 public:
  explicit Scoreboard(Schedule& schedule) : schedule_(schedule) {
    clocks_.resize(schedule.ops.size() * 2);
    lane_clock_.fill(Clock{});
    for (Clock& clock : lane_clock_) clock.fill(none);
  }

  void run() {
    for (int step = 0; step < 2; ++step)
      for (Op& op : schedule_.ops) place(op, step);
  }

 private:
  using Clock =
      std::array<OpNumber, num_lanes>;  // per in-order lane, the last op known to be complete

  OpNumber num_ops() const { return static_cast<OpNumber>(schedule_.ops.size()); }
  const Op& op_at(OpNumber number) const {
    return schedule_.ops[static_cast<std::size_t>(number % num_ops())];
  }

  void place(Op& op, int step) {
    const OpNumber self = step * num_ops() + op.id.value;
    std::vector<OpNumber> wanted = dependencies(op);
    if (schedule_.end == StepEnd::barrier) add_barrier(op, step, wanted);
    note(op, self);
    Clock clock = lane_clock_[static_cast<std::size_t>(op.lane)];
    const std::vector<OpNumber> kept = prune(wanted, clock, op.lane, self);
    auto& lane = lane_clock_[static_cast<std::size_t>(op.lane)];
    lane = clock;  // A lane issues in order: the next op starts after this one's edges are met.
    if (completes_in_order(op.lane)) lane[static_cast<std::size_t>(op.lane)] = self;
    Clock& done = clocks_[static_cast<std::size_t>(self)];
    done = clock;
    if (completes_in_order(op.lane)) done[static_cast<std::size_t>(op.lane)] = self;
    if (step == 1) record(op, kept);
  }

  std::vector<OpNumber> dependencies(const Op& op) {
    std::vector<OpNumber> wanted;
    for (const Operand& operand : op.operands) {
      const bool writes = operand.access != Access::read;
      touched_.for_each(operand.region, [&](Toucher& toucher) {
        if (toucher.writer != none) wanted.push_back(toucher.writer);
        if (writes) wanted.insert(wanted.end(), toucher.readers.begin(), toucher.readers.end());
      });
    }
    return wanted;
  }

  OpNumber last_of(int step) const { return (step + 1) * num_ops() - 1; }
  static bool is_write(const Op& op) { return op.kind == OpKind::write; }

  // The last op of a step closes it: it waits for every lane, and for every write, which nothing
  // else may wait for. The first op of each lane waits for the last one of the step before.
  void add_barrier(const Op& op, int step, std::vector<OpNumber>& wanted) const {
    if (op.id.value == num_ops() - 1) {
      for (const auto& lane : schedule_.lanes)
        for (OpId id : lane)
          if (is_write(schedule_.ops[id.index()]) || id == lane.back())
            wanted.push_back(step * num_ops() + id.value);
    }
    if (step > 0 && op.id == schedule_.lanes[static_cast<std::size_t>(op.lane)].front())
      wanted.push_back(last_of(step - 1));
  }

  void note(const Op& op, OpNumber self) {
    for (const Operand& operand : op.operands) {
      if (operand.access == Access::read) {
        touched_.for_each(operand.region, [&](Toucher& t) {
          if (t.readers.empty() || t.readers.back() != self) t.readers.push_back(self);
        });
      } else {
        touched_.assign(operand.region, Toucher{self, {}});
      }
    }
  }

  // Newest first: a newer edge often implies the older ones. `clock` takes in what the kept edges
  // bring.
  std::vector<OpNumber> prune(std::vector<OpNumber>& wanted, Clock& clock, Lane lane,
                              OpNumber self) {
    std::ranges::sort(wanted, std::greater<>{});
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    std::vector<OpNumber> kept;
    for (OpNumber number : wanted) {
      if (number == self || implied(number, clock, lane)) continue;
      kept.push_back(number);
      const Clock& brought = clocks_[static_cast<std::size_t>(number)];
      for (std::size_t i = 0; i < brought.size(); ++i) clock[i] = std::max(clock[i], brought[i]);
    }
    return kept;
  }

  bool implied(OpNumber number, const Clock& clock, Lane lane) const {
    const Lane from = op_at(number).lane;
    if (completes_in_order(from))
      return from == lane || clock[static_cast<std::size_t>(from)] >= number;
    return schedule_.end == StepEnd::barrier && is_write(op_at(number)) &&
           clock[static_cast<std::size_t>(schedule_.ops.back().lane)] >=
               last_of(static_cast<int>(number / num_ops()));
  }

  void record(Op& op, const std::vector<OpNumber>& kept) {
    op.after.clear();
    for (OpNumber number : kept) {
      const auto back = static_cast<std::int32_t>(1 - number / num_ops());
      op.after.push_back({op_at(number).id, back});
    }
  }

  Schedule& schedule_;
  IntervalMap<Toucher> touched_;
  std::vector<Clock> clocks_;  // per op number: what its completion implies
  std::array<Clock, num_lanes> lane_clock_;
};

}  // namespace

void derive_edges(Schedule& schedule) {
  for (auto& lane : schedule.lanes) lane.clear();
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    Op& op = schedule.ops[i];
    op.id = {static_cast<std::int32_t>(i)};
    schedule.lanes[static_cast<std::size_t>(op.lane)].push_back(op.id);
  }
  if (!schedule.ops.empty()) Scoreboard(schedule).run();
}

}  // namespace strata
