#pragma once
// How Slurm writes hosts and the tasks on them. Thread contract: any thread.

#include <string>
#include <string_view>

namespace strata {

// "node03" of "node[03-05,9],gpu1". Throws ConfigError naming the variable.
std::string first_slurm_host(std::string_view variable, std::string_view hosts);

// The tasks on host number `node` of "4(x2),3" (4, 4 and 3), or the most on any host when `node` is
// negative: a share of a host is then too small rather than too large. Throws ConfigError naming
// the variable.
int slurm_tasks_on_node(std::string_view variable, std::string_view tasks, int node);

}  // namespace strata
