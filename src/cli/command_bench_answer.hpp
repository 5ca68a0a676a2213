#pragma once
// What the measurements of `strata bench nvme` mean for a run: the settings to paste, how long the
// drives need for an optimizer step, and how many steps they live. Pure.

#include <optional>
#include <string>
#include <vector>

#include "strata/measure/nvme_report.hpp"
#include "strata/plan/plan.hpp"

namespace strata {

// What one optimizer step moves, and whose step it is: "One step of run.yaml".
struct NvmeDemand {
  std::string whose;
  NvmeTraffic traffic;  // of as many drives as were measured; none: no traffic at all
};

// Of 1e9 parameters whose whole fp32 optimizer state (master and two moments) is on NVMe, divided
// over the drives by their weights.
NvmeDemand demand_of_a_billion(const NvmeReport& report);

// Relative mixed bandwidth per drive, the fastest 1; empty for a single drive.
std::vector<double> nvme_weights(const NvmeReport& report);
// For offload.io_queue_depth, whose pieces are of the engine's chunk size.
int run_queue_depth(const NvmeReport& report);
// That NVMe alone needs for a step: nothing where the report lacks the rates.
std::optional<double> nvme_seconds(const NvmeReport& report, const NvmeTraffic& traffic);
// The same once the fast cache of the drives is full: nothing where no sustained run found a knee.
std::optional<double> nvme_seconds_after_knee(const NvmeReport& report, const NvmeTraffic& traffic);

struct AnswerOptions {
  std::string io_engine = "auto";
  std::optional<double> drive_tbw;  // terabytes (1e12) written that each drive is rated for
};
std::string format_answer(const NvmeReport& report, const NvmeDemand& demand,
                          const AnswerOptions& options);

}  // namespace strata
