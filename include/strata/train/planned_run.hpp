#pragma once
// The parts of a run that need no memory: model, optimizer, Program and verified Plan. Enough for
// `strata plan`. Thread contract: one thread.

#include <memory>
#include <vector>

#include "strata/checkpoint/hf_folder.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/model/model.hpp"
#include "strata/optim/optimizer.hpp"
#include "strata/plan/plan.hpp"
#include "strata/train/run_config.hpp"
#include "strata/train/run_threads.hpp"

namespace strata {

LlamaConfig llama_config(const HfConfig& config);
std::vector<ExpectedTensor> expected_tensors(const Model& model);
// When tiles are updated, as the config asks or as early as it allows. Throws ConfigError when what
// it asks for contradicts its clipping or its non-finite policy.
UpdateOrder update_order(const RunConfig& config);
// The order of micro-batches that the config asks for. Throws ConfigError when its groups do not
// divide gradient_accumulation_steps.
ProgramVariant program_variant(const RunConfig& config);
// Throws ConfigError when a split master is asked for without bf16 compute, or a momentum of an
// optimizer that has none.
OptimizerConfig optimizer_config(const RunConfig& config);

enum class Purpose : std::uint8_t { train, evaluate };

struct PlannedRun {
  // Before the kernels, whose threads call it. Null: kernels that have none, or no core is known.
  std::unique_ptr<RunThreads> threads;
  std::unique_ptr<Kernels> device_kernels, host_kernels;
  std::unique_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer, device_optimizer;  // by update engine; null for evaluation
  Program program;
  Plan plan;
};

// Reads config.json of the model folder (weights are not needed), plans and verifies. Throws
// ConfigError, FormatError, and OutOfMemory when a tier's limit is too small.
PlannedRun plan_run(const RunConfig& config, Purpose purpose);
// For a machine that may be another than this one.
PlannedRun plan_run(const RunConfig& config, Purpose purpose, const Topology& topology);

}  // namespace strata
