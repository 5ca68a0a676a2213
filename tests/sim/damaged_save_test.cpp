// Runs whose checkpoint does not come back from the drive as it was written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "sim/resumed_run.hpp"
#include "support/flipping_engine.hpp"
#include "support/polling.hpp"
#include "src/train/state_pieces.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using testing::difference_after;
using ::testing::ElementsAre;
using testing::FlippingEngine;
using testing::fresh_folder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ResumeBench;
using testing::RunTrail;

// What comes back first from the second half of a file, which is the last rank's, has another bit.
// Pieces of the first half are written slowly, most of them once that has happened.
class LastRankDamage : public FlippingEngine {
 public:
  LastRankDamage() : FlippingEngine(make_sim_engine({})) {}

  void submit(std::span<const IoRequest> requests) override {
    for (const IoRequest& request : requests)
      if (request.op == IoOp::write && !is_candidate(request)) write_slowly();
    FlippingEngine::submit(requests);
  }
  int slow_writes() const { return slow_writes_; }

 private:
  bool is_candidate(const IoRequest& request) override {
    return 2 * request.offset >= file_system().file_bytes(info(request.file).path);
  }
  void write_slowly() {
    const int writes = ++slow_writes_;
    if (writes > 2) testing::comes_true([&] { return has_flipped(); });
    // The longer, the more of them nobody has stopped: then a machine is busy, or nobody will.
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * writes * writes));
  }

  std::atomic<int> slow_writes_ = 0;
};

RunConfig config_of(int world) {
  RunConfig config = testing::tiny_config(testing::tiny_files());
  config.max_steps = 3;
  config.evaluate = false;
  config.gradient_accumulation_steps = 2 / world;
  config.output_dir = fresh_folder("run");
  config.save_steps = 2;
  config.offload.tile_bytes = 32 << 10;
  return config;
}

class DamagedSaveOf : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Background, DamagedSaveOf, ::testing::Bool());

TEST_P(DamagedSaveOf, OneRankIsToldByAllAndTrainingGoesOn) {
  RunConfig config = config_of(2);
  config.save_in_background = GetParam();
  const auto engine = std::make_shared<LastRankDamage>();
  ResumeBench bench(engine);
  const RunTrail trail = bench.train(config, 2);
  ASSERT_EQ(trail.said_of_saves.size(), 1u);
  EXPECT_THAT(trail.said_of_saves[0],
              AllOf(HasSubstr("no checkpoint at step 2"), HasSubstr("does not come back"),
                    HasSubstr("checkpoint-2.partial/0000")));
  EXPECT_THAT(engine->file_system().list(config.output_dir.string()), IsEmpty());
  EXPECT_EQ(difference_after(0, ResumeBench().train(config_of(2), 2), trail), "");
}

TEST(DamagedSave, OfOneRankIsToldWholeHoweverLong) {
  RunConfig config = config_of(2);
  config.output_dir /= std::string(200, 'x');
  config.output_dir /= std::string(200, 'y');
  std::filesystem::create_directories(config.output_dir);
  const auto engine = std::make_shared<LastRankDamage>();
  const RunTrail trail = ResumeBench(engine).train(config, 2);
  ASSERT_EQ(trail.said_of_saves.size(), 1u);
  EXPECT_GT(trail.said_of_saves[0].size(), 1024u);
  EXPECT_THAT(trail.said_of_saves[0], ::testing::EndsWith("name an output_dir on another drive"));
}

TEST(DamagedSave, OfOneRankStopsTheWritesOfTheOthers) {
  RunConfig config = config_of(2);
  config.save_in_background = false;
  const PlannedRun run = testing::plan_here(config_of(1));
  int pieces = 0;
  for (const StateVector& vector : state_vectors(run))
    pieces += static_cast<int>(vector.count * 4 / config.offload.tile_bytes);
  ASSERT_GT(pieces, 40);
  const auto engine = std::make_shared<LastRankDamage>();
  ResumeBench(engine).train(config, 2);
  EXPECT_LT(engine->slow_writes(), pieces / 4);
}

}  // namespace
}  // namespace strata
