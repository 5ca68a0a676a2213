#pragma once
// offload.auto: what a config leaves open is what a search finds fastest on a machine. Keys that
// the config file or the command line set stay as they are. Reads the model's config.json, no
// weights. Thread contract: one thread.

#include <string>

#include "strata/plan/machine.hpp"
#include "strata/plan/search.hpp"
#include "strata/train/run_config.hpp"

namespace strata {

// What a search for this config may change: all that no key of it says. A model whose head is tied
// to its embedding is accumulated horizontally.
SearchSpace search_space(const RunConfig& config);

// The config with the placement, slots, schedule and variant that were found, and offload.auto off:
// running it needs no search. Throws OutOfMemory when nothing fits the machine.
RunConfig auto_plan(const RunConfig& config, const MachineProfile& machine);

// What auto_plan() filled in, as YAML to paste into a config file.
std::string auto_plan_block(const RunConfig& chosen);

// Throws ConfigError when the config asks for a search and nobody made it: a run without a
// machine's rates.
void check_searched(const RunConfig& config);

}  // namespace strata
