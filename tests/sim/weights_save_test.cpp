// Checkpoints of the weights alone: each is a model that loads, and none takes the place of an
// older one before it has come back from the drive as it was written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>

#include "sim/tiny_training.hpp"
#include "support/file_size_limit.hpp"
#include "support/forwarding_engine.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::read_bytes;
using testing::TrainingRun;

// Saves after steps 2 and 4, and the second takes the place of the first. Some of the master, which
// is what is saved in fp32, is on a drive, so that saving has to read.
RunConfig run_that_saves_weights() {
  RunConfig config = testing::tiny_config(testing::tiny_files(60));
  config.bf16 = false;  // the export has the type of the model
  config.max_steps = 4;
  config.gradient_accumulation_steps = 1;
  config.evaluate = false;
  config.save_steps = 2;
  config.save_total_limit = 1;
  config.save_only_model = true;
  config.offload.master = {0, 0.5, 0.5};
  return config;
}

// A drive that loses a byte of what was exported for a checkpoint, while tiles are read for it.
class LosingEngine : public testing::ForwardingEngine {
 public:
  LosingEngine(std::unique_ptr<IoEngine> real, fs::path folder, std::string checkpoint)
      : ForwardingEngine(std::move(real)),
        folder_(std::move(folder)),
        prefix_(std::move(checkpoint) + ".tmp-") {}
  ~LosingEngine() override { real().drain(); }

  void submit(std::span<const IoRequest> requests) override {
    lose();
    real().submit(requests);
  }

 private:
  void lose() {
    for (const auto& entry : fs::directory_iterator(folder_))
      if (entry.path().filename().string().starts_with(prefix_))
        std::fstream(entry.path() / "model.safetensors",
                     std::ios::in | std::ios::out | std::ios::binary)
            .seekp(40)
            .put('\x7f');
  }

  const fs::path folder_;
  const std::string prefix_;
};

void expect_kept(const TrainingRun& run, const TrainOutcome& outcome, const std::string& reason) {
  const fs::path kept = run.output_dir() / "checkpoint-2";
  EXPECT_EQ(outcome.checkpoint, kept.string());
  EXPECT_EQ(outcome.steps, 4);
  EXPECT_THAT(read_bytes(run.output_dir() / "metrics.jsonl"),
              AllOf(HasSubstr("checkpoint-2"), HasSubstr(reason)));
  for (const auto& entry : fs::directory_iterator(run.output_dir()))
    EXPECT_FALSE(entry.path().filename().string().starts_with("checkpoint-4")) << entry.path();
  RunConfig again = run_that_saves_weights();
  again.model_name_or_path = kept;
  EXPECT_EQ(TrainingRun(again).exported_weights(), read_bytes(kept / "model.safetensors"));
}

TEST(WeightsSave, LeavesAModelThatLoadsAndIsTheRunsOwn) {
  TrainingRun run(run_that_saves_weights());
  const TrainOutcome outcome = run.train();
  const fs::path saved = run.output_dir() / "checkpoint-4";
  EXPECT_EQ(outcome.checkpoint, saved.string());
  EXPECT_FALSE(fs::exists(run.output_dir() / "checkpoint-2"));
  const std::string weights = run.exported_weights();
  EXPECT_TRUE(read_bytes(saved / "model.safetensors") == weights);
  RunConfig again = run_that_saves_weights();
  again.model_name_or_path = saved;
  EXPECT_TRUE(TrainingRun(again).exported_weights() == weights);
}

TEST(WeightsSave, KeepsTheOldOneWhereTheNewOneDoesNotComeBack) {
  // The output folder is the drive's too.
  const EngineFactory losing = [](const OffloadConfig& offload) {
    return std::make_shared<LosingEngine>(make_offload_engine(offload), offload.nvme_paths.front(),
                                          "checkpoint-4");
  };
  TrainingRun run(run_that_saves_weights(), {}, losing);
  const TrainOutcome outcome = run.train();
  expect_kept(run, outcome, "does not come back from the drive as it was written");
}

TEST(WeightsSave, KeepsTheOldOneWhereThereIsNoRoomForTheNewOne) {
  std::mutex mutex;
  std::optional<FileSizeLimit> limit;
  fs::path first;
  ExecutorOptions options;
  options.before_op = [&](const Op&) {
    const std::lock_guard lock(mutex);
    if (!limit && fs::exists(first)) limit.emplace(64 << 10);
  };
  RunConfig config = run_that_saves_weights();
  config.offload.master = {0, 1, 0};
  TrainingRun run(config, options);
  first = run.output_dir() / "checkpoint-2";
  const TrainOutcome outcome = run.train();
  EXPECT_TRUE(limit);
  limit.reset();
  expect_kept(run, outcome, "bytes) free on its file system");
}

}  // namespace
}  // namespace strata
