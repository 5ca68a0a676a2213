#pragma once
// Finds the fastest plan that fits. What is varied: where each role lives, the slots, the order of
// accumulation and of updates, which layers keep their insides, how many updates pass through the
// accelerator. Candidates are compared by their simulation, so what the search believes is what
// `strata plan` shows.
//
// Pure: the same arguments give the same choice, however fast the machine that searches is (the
// budget is in simulations, not in seconds). One thread.

#include <cstdint>
#include <functional>
#include <vector>

#include "strata/plan/machine.hpp"
#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"
#include "strata/program/program.hpp"

namespace strata {

// Declares the run's program in one of its variants. Called often: cheap, and pure.
using ProgramMaker = std::function<Program(const ProgramVariant&)>;

// A number of slots of a Policy: &Policy::weight_slots.
using SlotCount = int Policy::*;

// What a search may change; what is left out stays as in the start.
struct SearchSpace {
  int micro_batches = 1;  // of a step; bounds accumulation groups
  int num_layers = 0;     // bounds the layers that keep their insides
  bool placement = true;  // tier fractions of all roles
  bool slots = true;
  bool variants = true;  // accumulation groups, kept layers
  bool engines = true;   // updates that pass through the accelerator
  std::vector<UpdateOrder> update_orders = {UpdateOrder::deferred};  // allowed by clipping
  // Of the above, what stays as in the start all the same.
  std::vector<Role> fixed_roles;  // their tier fractions
  std::vector<SlotCount> fixed_slots;
  bool accumulation_groups = true, kept_layers = true;  // false: fixed, whatever `variants` says

  int max_simulations = 400;
  // Of all plans made, together: what bounds the time that a search of a large model takes.
  std::int64_t max_ops = 1'000'000;
};

struct SearchStart {
  ProgramVariant variant;
  Policy policy;
};

struct SearchResult {
  ProgramVariant variant;
  Policy policy;
  Simulation simulation;
  int simulations = 0;  // spent
};

// Throws OutOfMemory when nothing in the space fits: with the nearest that would, and what is
// missing on which tier.
SearchResult search(const ProgramMaker& make_program, const TierLimits& limits,
                    const MachineProfile& machine, const SearchStart& start,
                    const SearchSpace& space);

}  // namespace strata
