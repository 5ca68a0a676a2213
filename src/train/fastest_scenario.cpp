#include "strata/plan/search.hpp"
#include "strata/train/forecast.hpp"

namespace strata {
namespace {

// As early as clipping and the non-finite policy allow (update_order()).
std::vector<UpdateOrder> allowed_orders(const RunConfig& config) {
  RunConfig free = config;
  free.offload.update_order = "auto";
  if (update_order(free) == UpdateOrder::deferred) return {UpdateOrder::deferred};
  return {UpdateOrder::deferred, UpdateOrder::during_backward};
}

}  // namespace

Scenario fastest_scenario(const Scenario& start, const MachineProfile& machine) {
  const PlannedRun run = declare_run(start.config, start.choice.variant);
  SearchSpace space;
  space.micro_batches = static_cast<int>(start.config.gradient_accumulation_steps);
  space.num_layers = static_cast<int>(run.program.blocks.size()) - 2;  // of embedding and head
  space.update_orders = allowed_orders(start.config);
  const SearchResult found = search(
      [&](const ProgramVariant& variant) {
        return declare_program(start.config, Purpose::train, *run.model, variant);
      },
      run_limits(start.config, machine), machine, {start.choice.variant, start.choice.policy},
      space);
  return {start.config, {found.variant, found.policy}};
}

}  // namespace strata
