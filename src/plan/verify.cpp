#include <fmt/format.h>

#include <algorithm>

#include "plan/saved_state.hpp"
#include "plan/verify_extents.hpp"
#include "plan/verify_form.hpp"
#include "plan/verify_order.hpp"
#include "plan/verify_values.hpp"
#include "strata/plan/plan.hpp"

namespace strata {
namespace {

void complain(std::vector<Violation>& found, std::string what) {
  if (found.size() < 20) found.push_back({std::move(what)});
}

// One schedule for each sequence, one more that saves where the policy asks for it, and no other.
void check_sequences(const Program& program, const Plan& plan, std::vector<Violation>& found) {
  const auto times = [&](std::string_view name) {
    return std::ranges::count(plan.schedules, name, &Schedule::name);
  };
  for (const Sequence& sequence : program.sequences)
    if (times(sequence.name) != 1)
      complain(found, fmt::format("has {} schedules of sequence '{}'", times(sequence.name),
                                  sequence.name));
  const bool saves = plan.policy.background_saves && program.sequence("train") != nullptr;
  if (times(saving_schedule) != (saves ? 1 : 0))
    complain(found, fmt::format("has {} schedules that save", times(saving_schedule)));
  for (const Schedule& schedule : plan.schedules)
    if (sequence_of(program, schedule) == nullptr)
      complain(found, fmt::format("schedule '{}' has no sequence", schedule.name));
}

// The policy tells what else may begin before the updates are done: edges must agree.
void check_step_end(const Program& program, const Plan& plan, const Schedule& schedule,
                    std::vector<Violation>& found) {
  const bool has_norm = std::ranges::any_of(
      sequence_of(program, schedule)->segments,
      [&](SegmentId id) { return program.segment(id).kind == SegmentKind::norm; });
  const bool is_plain = plan.policy.update_order == UpdateOrder::after_backward;
  const StepEnd right = has_norm && is_plain ? StepEnd::barrier : StepEnd::open;
  if (schedule.end == right) return;
  complain(found, right == StepEnd::barrier
                      ? fmt::format("updates were to come after backward, but '{}' runs on into "
                                    "the next step",
                                    schedule.name)
                      : fmt::format("'{}' ends with a barrier that its policy does not ask for",
                                    schedule.name));
}

void check_lanes(const Schedule& schedule, std::vector<Violation>& found) {
  std::vector<int> seen(schedule.ops.size(), 0);
  for (std::size_t i = 0; i < schedule.ops.size(); ++i)
    if (schedule.ops[i].id.value != static_cast<std::int32_t>(i))
      complain(found, fmt::format("op {} calls itself {}", i, schedule.ops[i].id.value));
  for (std::size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    OpId last;
    for (OpId id : schedule.lanes[lane]) {
      if (id.value < 0 || id.index() >= seen.size())
        return complain(found, fmt::format("lane {} holds op {}, which is none", lane, id.value));
      const Op& op = schedule.ops[id.index()];
      if (static_cast<std::size_t>(op.lane) != lane || !(last < id))
        complain(found, fmt::format("op {} is misplaced on lane {}", id.value, lane));
      ++seen[id.index()];
      last = id;
    }
  }
  if (!std::ranges::all_of(seen, [](int times) { return times == 1; }))
    complain(found, "lanes do not hold each op once");
}

}  // namespace

std::vector<Violation> verify(const Program& program, const Plan& plan) {
  std::vector<Violation> found;
  check_sequences(program, plan, found);
  verify_extents(program, plan, found);
  for (const Schedule& schedule : plan.schedules) {
    if (!found.empty()) return found;
    check_lanes(schedule, found);
    check_step_end(program, plan, schedule, found);
    verify_form(program, plan, schedule, found);
    if (!found.empty()) return found;
    ValueReplay(program, plan, schedule, found).run(3);
    verify_order(schedule, found);
  }
  return found;
}

}  // namespace strata
