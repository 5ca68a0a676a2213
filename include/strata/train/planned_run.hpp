#pragma once
// The parts of a run that need no memory: model, optimizer, Program and verified Plan. Enough for
// `strata plan`. Thread contract: one thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strata/checkpoint/hf_folder.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/model/model.hpp"
#include "strata/optim/optimizer.hpp"
#include "strata/plan/machine.hpp"
#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"
#include "strata/train/rank_device.hpp"
#include "strata/train/ranks.hpp"
#include "strata/train/run_config.hpp"
#include "strata/train/run_threads.hpp"

namespace strata {

LlamaConfig llama_config(const HfConfig& config);
std::vector<ExpectedTensor> expected_tensors(const Model& model);
// When tiles are updated, as the config asks or as early as it allows. Throws ConfigError when what
// it asks for contradicts its clipping or its non-finite policy.
UpdateOrder update_order(const RunConfig& config);
// The order of micro-batches and the kept layers that the config asks for. Throws ConfigError when
// its groups do not divide gradient_accumulation_steps.
ProgramVariant program_variant(const RunConfig& config);
// Throws ConfigError when a split master is asked for without bf16 compute, or a momentum of an
// optimizer that has none.
OptimizerConfig optimizer_config(const RunConfig& config);

enum class Purpose : std::uint8_t { train, evaluate };

struct PlannedRun {
  // Before the kernels, whose threads call it. Null: kernels that have none, or no core is known.
  std::unique_ptr<RunThreads> threads;
  // The GPU that computes, and its workspace, as RankDevice has them. Null: the host stands in for
  // one, or the run is known by numbers alone.
  std::shared_ptr<Device> device;
  Slab workspace;
  std::span<std::byte> staging;
  DeviceSum device_sum;
  std::string device_text;            // for the log; empty: no GPU
  std::uint64_t workspace_bytes = 0;  // of the GPU, beside the plan's tier
  std::unique_ptr<Kernels> device_kernels, host_kernels;
  std::unique_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer, device_optimizer;  // by update engine; null for evaluation
  Program program;
  Plan plan;
};

// Its checkpoints hold the state, not weights alone.
bool saves_state(const RunConfig& config);
// Whether any of its state lives on nvme.
bool uses_drives(const RunConfig& config, Purpose purpose);
// What of a host's available memory no tier is given: processes hold more than tiers and buffers,
// such as libraries, threads and what kernels keep for each, plans, batches, page tables.
std::uint64_t host_reserve_bytes(std::uint64_t available, int num_host_ranks);
// Of which drives there are limits: those of a run that puts nothing on them need not be there.
enum class DrivesLimited : std::uint8_t { in_use, all_named };
// What each rank of a run may have of this machine, of which `num_host_ranks` share RAM and drives;
// `device_bytes` of GPUs. Without them the host stands in. Throws ConfigError when the drives
// cannot serve.
TierLimits rank_limits(const RunConfig& config, Purpose purpose, const Topology& topology,
                       int num_host_ranks, std::optional<std::uint64_t> device_bytes = {},
                       DrivesLimited drives = DrivesLimited::in_use);
// One rank's part, on its device. Reads config.json of the model folder (weights are not needed),
// plans and verifies. Throws ConfigError, FormatError, and OutOfMemory when a tier's limit is too
// small. All ranks must be planned with the same limits.
PlannedRun plan_run(const RunConfig& config, Purpose purpose, const Topology& topology,
                    const RankPlace& place, const TierLimits& limits, RankDevice device = {});
// The first rank's part, all ranks being on the host, this one or one that may be another.
PlannedRun plan_run(const RunConfig& config, Purpose purpose);
PlannedRun plan_run(const RunConfig& config, Purpose purpose, const Topology& topology);

// How a run goes about it: what its config says, or what a search chose instead.
struct PlanChoice {
  ProgramVariant variant;
  Policy policy;
};
PlanChoice plan_choice(const RunConfig& config);
// The program of a run in one of its variants. Cheap, and pure.
Program declare_program(const RunConfig& config, Purpose purpose, const Model& model,
                        const ProgramVariant& variant, int rank = 0);

// What one rank may have of a machine known by its numbers, on its GPUs beside the kernels'
// workspace. The NVMe tier is the machine's drives, whatever paths the config names;
// offload.cpu_limit is what all ranks together may have.
TierLimits run_limits(const RunConfig& config, const MachineProfile& machine);

enum class Proof : std::uint8_t {
  verified,  // as every plan that runs
  trusted,   // of plans that are only compared
};
// A training run by numbers alone: neither threads are started nor memory touched, and nothing but
// the model's config.json need be here. Its kernels are those of a GPU where config.device says so;
// automatic is the host. The first has no plan yet.
PlannedRun declare_run(const RunConfig& config, const ProgramVariant& variant);
PlannedRun plan_run(const RunConfig& config, const TierLimits& limits, const PlanChoice& choice,
                    Proof proof);
PlannedRun plan_run(const RunConfig& config, const MachineProfile& machine);

}  // namespace strata
