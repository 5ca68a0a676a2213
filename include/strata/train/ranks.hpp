#pragma once
// Ranks of a run that live in this process, one thread each, and where they stand among all.

#include <functional>
#include <span>
#include <vector>

#include "strata/comm/communicator.hpp"

namespace strata {

// One rank's place. `host_rank` counts the ranks on this host, over its processes: they share its
// cores, RAM and drives.
struct RankPlace {
  int rank = 0, world = 1;
  int host_rank = 0, num_host_ranks = 1;
};

// Runs `body` for each rank on a thread of its own (the first on the calling one) and returns when
// all have ended. When one throws, the job is aborted with its reason, which ends the others; then
// throws an Error with the first reason of the job, "rank 1: step 3: ...", a ConfigError where that
// is one of a rank of this process. A job of one rank has just the call, and throws what it throws.
void run_ranks(std::span<RankLinks> ranks, const std::function<void(RankLinks&)>& body);

}  // namespace strata
