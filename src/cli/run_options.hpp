#pragma once
// CONFIG.yaml [key=value ...], shared by the commands that run or plan.

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "strata/cli/config.hpp"
#include "strata/train/job.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

struct RunOptions {
  std::string file;
  std::vector<std::string> overrides;
};

std::shared_ptr<RunOptions> add_run_options(CLI::App& command);

void print_warnings(const std::vector<std::string>& warnings);
// Reads the config, prints its warnings, and checks what every run needs.
RunConfig load_run_config(const RunOptions& options);
// Throws ConfigError when the config, read from that source, names no model folder.
void check_model(const RunConfig& config, const std::string& source_name);

// --print-config: the resolved config, to be given back, with the origin of each value.
int print_config(const RunConfig& config);
// What the keys of a DeepSpeed config became, and warnings.
void print_notes(const RunConfig& config);
// Throws ConfigError when train_batch_size is not what so many ranks make of the other keys.
void check_train_batch_size(const RunConfig& config, int world);

// Of all processes alike: the version and every key.
JobOptions job_options(const RunConfig& config);
// "gpus     1 of 8 GPUs is used; ranks: 8 uses all", where there is something to tell.
void tell_devices(const DeviceChoice& choice);
// As choose_devices(); the process that leads tells of it, and all print warnings that come later.
DeviceChoice choose_and_tell_devices(const RunConfig& config, Job& job);
// Devices and threads of the ranks of this process but the first, whose notes tell of its own.
void print_other_ranks(const std::vector<PlannedRun>& runs);
// A line "model  SmolLM2 ... 134.5M parameters", and the placement table.
void print_plan(const RunConfig& config, const PlannedRun& run);

}  // namespace strata
