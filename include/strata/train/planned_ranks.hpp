#pragma once
// The ranks of this process from their plans on: planned with limits that the whole job agrees on,
// then each run on its thread over one I/O engine. Thread contract: the main thread.

#include <functional>
#include <vector>

#include "strata/train/job.hpp"
#include "strata/train/planned_run.hpp"
#include "strata/train/session.hpp"

namespace strata {

// In the order of job.ranks(). Throws what plan_run() throws, and OutOfMemory when this machine's
// RAM does not hold all ranks of the host.
std::vector<PlannedRun> plan_ranks(const RunConfig& config, Purpose purpose, Job& job);

// Makes the Session of its plan with these options, and returns when it is done.
using RankWork = std::function<void(PlannedRun planned, const SessionOptions& options)>;
// As run_ranks(). `options` are each rank's, but for its links.
void run_planned(Job& job, std::vector<PlannedRun> planned, const SessionOptions& options,
                 const RankWork& work);

}  // namespace strata
