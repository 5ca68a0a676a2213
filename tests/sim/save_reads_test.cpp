// What saving reads of what is there already.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "sim/resumed_run.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "support/forwarding_file_system.hpp"
#include "support/forwarding_engine.hpp"

namespace strata {
namespace {

using ::testing::ElementsAre;
using testing::ForwardingEngine;
using testing::ForwardingFileSystem;

// Counts the small files that are read whole.
class ReadCounter : public ForwardingFileSystem {
 public:
  explicit ReadCounter(FileSystem& real) : real_(real) {}
  std::vector<std::byte> read_file(const std::string& path, std::uint64_t bytes) const override {
    ++num_reads;
    return real_.read_file(path, bytes);
  }
  mutable std::atomic<int> num_reads = 0;

 private:
  FileSystem& at(const char*, const std::string&) const override { return real_; }

  FileSystem& real_;
};

class ReadCountingEngine : public ForwardingEngine {
 public:
  ReadCountingEngine() : ForwardingEngine(make_sim_engine({})), files_(real().file_system()) {}
  FileSystem& file_system() override { return files_; }
  int num_reads() const { return files_.num_reads; }

 private:
  ReadCounter files_;
};

// A manifest has up to 256 MiB: what was written a moment ago is known.
TEST(SaveReads, NoManifestOfACheckpointThatStands) {
  RunConfig config =
      testing::tiny_config(testing::make_training_files(random_model_preset("tiny")));
  config.max_steps = 6;
  config.evaluate = false;
  config.save_steps = 2;
  config.save_total_limit = 1;
  config.output_dir = testing::fresh_folder("run");
  const auto engine = std::make_shared<ReadCountingEngine>();
  const testing::RunTrail trail = testing::ResumeBench(engine).train(config, 1);
  EXPECT_THAT(trail.saved, ElementsAre(2, 4, 6));
  EXPECT_EQ(engine->num_reads(), 0);
}

}  // namespace
}  // namespace strata
