// What a run on a GPU, a fake of one, leaves behind and goes on from: the same bytes as on the
// host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/fake_gpu.hpp"
#include "sim/resumed_run.hpp"
#include "sim/ways_to_hold_state.hpp"
#include "strata/checkpoint/random_model.hpp"

namespace strata {
namespace {

using testing::ChangeRank;
using testing::checkpoint_of;
using testing::difference_after;
using ::testing::ElementsAre;
using testing::FakeGpu;
using testing::in_ram;
using testing::make_training_files;
using testing::mixed;
using testing::on_device;
using testing::on_nvme;
using testing::ResumeBench;
using testing::ResumedRank;
using testing::RunTrail;
using testing::saving_config;
using testing::split;
using testing::Way;

constexpr std::int64_t gpu_saved_step = 3, gpu_last_step = 5;

class GpuSaves : public ::testing::Test {
 protected:
  GpuSaves() : files_(make_training_files(random_model_preset("tiny"))) {}

  RunConfig config(const Way& way) const {
    RunConfig config = saving_config(files_, gpu_saved_step, gpu_last_step);
    way.apply(config);
    return config;
  }
  RunTrail on_host(const RunConfig& config, const std::string& checkpoint = "") {
    return bench_.train(config, 1, checkpoint);
  }
  // A run that `train` makes with what it is given.
  static RunTrail with_gpu(const std::function<RunTrail(const ChangeRank&)>& train,
                           const ExecutorOptions& options = {},
                           const std::atomic<bool>* stop = nullptr) {
    FakeGpu gpu;
    RunTrail trail = train([&](ResumedRank& given) {
      given.executor = gpu.watched(options);
      given.open_device = [&gpu] { return gpu.open(); };
      given.stop = stop;
    });
    EXPECT_EQ(gpu.complaints(), "");
    return trail;
  }
  RunTrail on_gpu(const RunConfig& config, const std::string& checkpoint = "") {
    return with_gpu(
        [&](const ChangeRank& change) { return bench_.train(config, 1, checkpoint, change); });
  }
  void expect_same_checkpoint(const RunConfig& one, const RunConfig& other,
                              const std::string& what) {
    EXPECT_EQ(testing::checkpoint_difference(bench_.disk(), checkpoint_of(one, gpu_saved_step),
                                             checkpoint_of(other, gpu_saved_step)),
              "")
        << what;
  }

  testing::TrainingFiles files_;
  ResumeBench bench_;
};

TEST_F(GpuSaves, HaveTheBytesOfTheHostsBesideTrainingAndStandingStill) {
  for (const Way& way : {in_ram, on_device, on_nvme, mixed, split}) {
    const RunConfig host = config(way);
    const RunTrail plain = on_host(host);
    for (const bool in_background : {true, false}) {
      RunConfig placed = config(way);
      placed.save_in_background = in_background;
      const RunTrail trail = on_gpu(placed);
      EXPECT_EQ(difference_after(0, plain, trail), "") << way.name;
      EXPECT_THAT(trail.saved, ElementsAre(gpu_saved_step)) << way.name;
      expect_same_checkpoint(host, placed, way.name);
    }
  }
}

TEST_F(GpuSaves, AreGoneOnFromOnEitherDevice) {
  for (const Way& way : {on_device, mixed, split}) {
    const RunConfig first = config(way);
    const RunTrail whole = on_gpu(first);
    const std::string checkpoint = checkpoint_of(first, gpu_saved_step);
    EXPECT_EQ(difference_after(gpu_saved_step, whole, on_gpu(config(way), checkpoint)), "")
        << way.name;
    EXPECT_EQ(difference_after(gpu_saved_step, whole, on_host(config(way), checkpoint)), "")
        << way.name;
  }
}

TEST_F(GpuSaves, AreDurableStepByStepAndGoneOnFrom) {
  const Way durable{"durable", [](RunConfig& c) {
                      c.offload.versioned = true;
                      c.offload.master = c.offload.moment1 = c.offload.moment2 = {0, 0, 1};
                      c.offload.weights = {0.4, 0.3, 0.3};
                      c.offload.streamed_updates = 0.5;
                      c.save_strategy = SaveStrategy::no;
                      c.resume_from_checkpoint = "true";
                    }};
  const RunTrail whole = bench_.go_on(config(durable), 1);
  const RunConfig placed = config(durable);
  std::atomic<bool> stop = false;
  int reports = 0;
  ExecutorOptions options;
  options.before_op = [&](const Op& op) {
    if (op.kind == OpKind::report && ++reports == 2) stop = true;
  };
  const auto go_on = [&](const ChangeRank& change) { return bench_.go_on(placed, 1, change); };
  const RunTrail first = with_gpu(go_on, options, &stop);
  EXPECT_EQ(first.outcomes.at(0).durable_step, 2);
  const RunTrail rest = with_gpu(go_on);
  EXPECT_EQ(difference_after(2, whole, rest), "");
}

TEST_F(GpuSaves, OfEveryStepHaveTheBytesOfTheHosts) {
  const Way often{"often", [](RunConfig& c) {
                    mixed.apply(c);
                    c.save_steps = 1;
                    c.offload.streamed_updates = 0.5;
                  }};
  const RunConfig host = config(often), placed = config(often);
  EXPECT_EQ(difference_after(0, on_host(host), on_gpu(placed)), "");
  expect_same_checkpoint(host, placed, often.name);
}

}  // namespace
}  // namespace strata
