#pragma once
// Trains a random model with several ranks, each a thread with its own Session and Trainer over one
// I/O engine, the way `strata train` does.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/tiny_training.hpp"
#include "strata/comm/nccl.hpp"

namespace strata::testing {

// What one rank of a run is given.
struct RankSetup {
  int rank = 0;
  RunConfig config;  // of its Session and Trainer; its plan is made of the whole run's
  ExecutorOptions executor;
  DeviceFactory make_device = make_run_device;
  const std::atomic<bool>* stop = nullptr;
  // On the rank's thread, when it has trained.
  std::function<void(Session&)> trained = {};
};

struct RanksOptions {
  ExecutorOptions executor = {};
  EngineFactory make_engine = make_offload_engine;  // called once at most
  std::function<void(RankSetup&)> change = {};      // on the rank's thread
  // Where ranks have GPUs: each its own, and what carries between them.
  std::function<RankDevice(int rank)> open_device = {};
  std::function<std::unique_ptr<NcclJob>()> make_nccl = {};
};

// What one rank knows at its end.
struct RankFacts {
  Plan plan;
  TrainOutcome training;
  std::vector<TierPeak> peaks;        // the most of any rank
  std::uint64_t exchanged_bytes = 0;  // with other ranks, for the plan's ops
};

struct RanksOutcome {
  Outcome outcome;  // as the first rank logged and wrote it
  std::vector<RankFacts> ranks;
};

// The config for so many ranks, threads of one process.
RunConfig of_ranks(RunConfig config, int world, int stage);

// Plans the part of one rank on this machine.
PlannedRun plan_of_rank(const RunConfig& config, int rank);

// One run of config.world ranks in a folder of its own. Throws what run_ranks() throws.
RanksOutcome train_on_ranks(const RunConfig& config, const RanksOptions& options = {});

// As place_randomly(), with no more threads than ranks that share few cores should have.
void place_ranks_randomly(RunConfig& config, std::uint64_t seed);

// Everything on the same tiers.
void place_state(RunConfig& config, const TierFractions& fractions);

// A simulated disk whose transfers are late, short and out of order.
EngineFactory unruly_sim_engine(std::uint64_t seed);

// The elements of an exported model.safetensors in fp32, in the file's order.
std::vector<float> exported_f32(const std::string& weights);

}  // namespace strata::testing
