#pragma once
// Which ops of a schedule are known to be complete when another starts, by all its edges and lanes
// together: the plain transitive closure over three steps. Tests of the checker tell by it whether
// an edge is needed, or implied by the others.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "strata/plan/plan.hpp"

namespace strata::testing {

class EdgeClosure {
 public:
  // All edges point back: to earlier ops of the step, or to the step before.
  explicit EdgeClosure(const Schedule& schedule)
      : num_ops_(schedule.ops.size()), words_((steps * num_ops_ + 63) / 64) {
    done_.assign(steps * num_ops_, Ops(words_, 0));
    std::array<std::size_t, num_lanes> last;
    last.fill(nothing);
    for (std::size_t n = 0; n < done_.size(); ++n) start(schedule, n, last);
  }

  // Whether, in each step, the edge's op is complete when `op` starts.
  bool implies(OpId op, const Edge& edge) const {
    for (std::size_t step = 0; step < steps; ++step) {
      const std::size_t n = step * num_ops_ + op.index(), from = source(n, edge);
      if (from != nothing && !has(done_[n], from)) return false;
    }
    return true;
  }

  bool implies_all_of(const Schedule& schedule) const {
    return std::ranges::all_of(schedule.ops, [&](const Op& op) {
      return std::ranges::all_of(op.after, [&](const Edge& edge) { return implies(op.id, edge); });
    });
  }

 private:
  using Ops = std::vector<std::uint64_t>;  // a set of op numbers: step * num_ops + id
  static constexpr std::size_t steps = 3, nothing = ~std::size_t{0};

  static bool has(const Ops& ops, std::size_t n) { return ops[n / 64] >> (n % 64) & 1; }
  static void add(Ops& ops, std::size_t n) { ops[n / 64] |= std::uint64_t{1} << (n % 64); }
  static void add_all(Ops& ops, const Ops& others) {
    for (std::size_t i = 0; i < ops.size(); ++i) ops[i] |= others[i];
  }

  std::size_t source(std::size_t n, const Edge& edge) const {
    const std::size_t step = n / num_ops_, back = static_cast<std::size_t>(edge.steps_back);
    return step < back ? nothing : (step - back) * num_ops_ + edge.op.index();
  }

  // A lane issues in order; all but those of drives also complete in order.
  void start(const Schedule& schedule, std::size_t n, std::array<std::size_t, num_lanes>& last) {
    const Op& op = schedule.ops[n % num_ops_];
    std::size_t& before = last[static_cast<std::size_t>(op.lane)];
    if (before != nothing) {
      add_all(done_[n], done_[before]);
      if (completes_in_order(op.lane)) add(done_[n], before);
    }
    before = n;
    for (const Edge& edge : op.after)
      if (const std::size_t from = source(n, edge); from != nothing) {
        add_all(done_[n], done_[from]);
        add(done_[n], from);
      }
  }

  std::size_t num_ops_, words_;
  std::vector<Ops> done_;  // by op number: what is complete when it starts
};

// What the checker makes of a plan that lacks one edge, for edges that the others do not imply.
struct DroppedEdges {
  int needed = 0, implied = 0;
  std::vector<std::string> missed;
};

// Drops each edge of the ops that `select` picks, one at a time.
template <typename Select>
DroppedEdges drop_edges(const Program& program, const Plan& plan, Select select) {
  DroppedEdges result;
  Plan lacking = plan;
  for (Schedule& schedule : lacking.schedules)
    for (Op& op : schedule.ops)
      for (std::size_t i = 0; select(std::as_const(op)) && i < op.after.size(); ++i) {
        const Edge edge = op.after[i];
        op.after.erase(op.after.begin() + static_cast<std::ptrdiff_t>(i));
        const bool is_needed = !EdgeClosure(schedule).implies(op.id, edge);
        ++(is_needed ? result.needed : result.implied);
        if (is_needed && verify(program, lacking).empty())
          result.missed.push_back("op " + std::to_string(op.id.value) + " of " + schedule.name +
                                  " after op " + std::to_string(edge.op.value) + " of " +
                                  std::to_string(edge.steps_back) + " steps back");
        op.after.insert(op.after.begin() + static_cast<std::ptrdiff_t>(i), edge);
      }
  return result;
}

}  // namespace strata::testing
