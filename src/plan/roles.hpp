#pragma once
// What the roles and segments of a Program have in common: words that planner, checker and reports
// share.

#include "strata/program/program.hpp"

namespace strata {

// Needed to go on after a step: what a checkpoint holds.
constexpr bool outlives_steps(Role role) {
  return role == Role::weight || role == Role::master || role == Role::moment1 ||
         role == Role::moment2;
}
// What the optimizer keeps, and checkpoints hold: working weights are masters rounded.
constexpr bool is_optimizer_state(Role role) {
  return role == Role::master || role == Role::moment1 || role == Role::moment2;
}
// Cut into tiles that each have a home of their own.
constexpr bool is_model_state(Role role) { return outlives_steps(role) || role == Role::gradient; }
// Kept from forward to backward; homes are shared by what is not alive together.
constexpr bool is_kept(Role role) { return role == Role::activation || role == Role::saved; }

// The others are the optimizer's.
constexpr bool is_model_segment(SegmentKind kind) {
  return kind != SegmentKind::norm && kind != SegmentKind::update;
}

}  // namespace strata
