#pragma once
// Trains a random model end to end, the way `strata train` does, and keeps what must not depend on
// where things live.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "strata/checkpoint/hf_folder.hpp"
#include "strata/runtime/executor.hpp"
#include "strata/train/run_config.hpp"
#include "strata/train/session.hpp"
#include "strata/train/trainer.hpp"

namespace strata::testing {

// A folder below TempDir that nobody used before in this process.
std::filesystem::path fresh_folder(const std::string& name);

// A random model and token shards for it, in files.
struct TrainingFiles {
  std::filesystem::path model, train_shard, heldout_shard;
};
// `documents` texts of 20 to 79 bytes for training, a few others held out.
TrainingFiles make_training_files(const HfConfig& model, int documents = 200,
                                  DType dtype = DType::f32);
// Of the preset "tiny", made once a process: for tests that change none of them.
const TrainingFiles& tiny_files(int documents = 200);
// Of one layer of it, likewise: for tests of very many runs.
const TrainingFiles& one_layer_files();
// So many documents to train on that are alike, and a last one with a byte whose embedding is
// infinite.
TrainingFiles poisoned_files(int documents);

// Three layers, hidden 64, vocabulary 257; 20 steps of two micro-batches with clipping, held-out
// loss every 7 steps.
RunConfig tiny_config(const TrainingFiles& files);

// What a run gives: its numbers and the bytes of the exported model.safetensors.
struct Outcome {
  std::vector<double> losses, norms, held_out;
  std::string weights;
  bool operator==(const Outcome&) const = default;
};
// Which of them differ, for a failure message; empty when equal.
std::string difference(const Outcome& expected, const Outcome& got);

// What a run logged to output_dir/metrics.jsonl; no weights.
Outcome logged_outcome(const std::filesystem::path& output_dir);

// An engine over a simulated disk that has the directories of offload.nvme_paths.
std::unique_ptr<IoEngine> make_sim_engine_for(const OffloadConfig& offload,
                                              const SimOptions& options = {});

// Plans a run of the config on this machine.
PlannedRun plan_here(const RunConfig& config);

// One run with its own output folder. Throws what the run throws.
class TrainingRun {
 public:
  explicit TrainingRun(
      RunConfig config, const ExecutorOptions& options = {},
      const EngineFactory& make_engine = make_offload_engine,
      const std::function<PlannedRun(const RunConfig& config)>& make_plan = plan_here,
      const TrainerOptions& watched = {});
  ~TrainingRun();

  Session& session() { return *session_; }
  const std::filesystem::path& output_dir() const { return config_.output_dir; }
  TrainOutcome train(const std::atomic<bool>* stop = nullptr);
  // The losses and norms logged so far, and the weights as they are now.
  Outcome outcome();
  std::string exported_weights();

 private:
  RunConfig config_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> quiet_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<Trainer> trainer_;
  int exports_ = 0;
};

Outcome train(const RunConfig& config, const ExecutorOptions& options = {},
              const EngineFactory& make_engine = make_offload_engine);

// A placement over all tiers with slot counts, tile size, engine and threads, all from the seed.
void place_randomly(RunConfig& config, std::uint64_t seed);

std::string read_bytes(const std::filesystem::path& file);

}  // namespace strata::testing
