#pragma once
// The ranks of this process from their plans on: planned with limits that the whole job agrees on,
// then each run on its thread over one I/O engine. Thread contract: the main thread.

#include <functional>
#include <memory>
#include <vector>

#include "strata/io/store/drive_owner.hpp"
#include "strata/train/job.hpp"
#include "strata/train/planned_run.hpp"
#include "strata/train/session.hpp"

namespace strata {

// Takes the folders of the NVMe tier for this job, on each of its hosts; null on processes that
// need none, and where another process of the host has them. Throws ConfigError naming a run that
// has one. Every process must call it, before anything is planned: what a run leaves free on its
// drives is not there for others.
std::unique_ptr<DriveOwner> own_drives(const RunConfig& config, Purpose purpose, Job& job);
// What this host's ranks compute on, alike on all hosts. Throws what choose_device() throws. Every
// process must call it.
DeviceChoice choose_devices(const RunConfig& config, Job& job);
// In the order of job.ranks(). Throws what plan_run() throws, and OutOfMemory when this machine's
// RAM does not hold all ranks of the host, or a GPU its rank.
std::vector<PlannedRun> plan_ranks(const RunConfig& config, Purpose purpose, Job& job,
                                   const DeviceChoice& devices);

// Makes the Session of its plan with these options, and returns when it is done.
using RankWork = std::function<void(PlannedRun planned, const SessionOptions& options)>;
// As run_ranks(). `options` are each rank's, but for its links.
void run_planned(const RunConfig& config, Job& job, std::vector<PlannedRun> planned,
                 const SessionOptions& options, const RankWork& work);

}  // namespace strata
