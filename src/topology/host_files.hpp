#pragma once
// Host facts from a /proc and /sys of the caller's choice.

#include "strata/topology/host.hpp"
#include "system_files.hpp"

namespace strata {

HostFacts read_host_facts(const SystemRoots& roots);

}  // namespace strata
