// Whole runs of several ranks, each with a fake of a GPU, that exchange over a fake of NCCL: their
// losses and weights have the bits of ranks on the host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "fake_cuda/streamed_kernels.hpp"
#include "fake_nccl/nccl_ranks_of_test.hpp"
#include "sim/rank_training.hpp"
#include "sim/tiny_training.hpp"
#include "src/device/cuda/cuda_device.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using testing::difference;
using testing::FakeCuda;
using testing::FakeNccl;
using ::testing::HasSubstr;
using testing::HostTouch;
using ::testing::IsEmpty;
using testing::of_ranks;
using testing::place_ranks_randomly;
using testing::place_state;
using testing::RanksOptions;
using testing::RanksOutcome;
using ::testing::ThrowsMessage;
using testing::tiny_config;
using testing::tiny_files;
using testing::train_on_ranks;

constexpr std::uint64_t workspace_bytes = MiB, staging_bytes = 64 * KiB;

RunConfig short_config(int world, int stage) {
  RunConfig config = of_ranks(tiny_config(tiny_files()), world, stage);
  config.max_steps = 3;
  config.eval_steps = 2;
  config.save_strategy = SaveStrategy::no;
  config.compute_threads = config.update_threads = 1;
  return config;
}

// Machine and library of one run.
class FakeGpus {
 public:
  explicit FakeGpus(int world)
      : cuda_({.seed = 1, .num_devices = world, .host_touch = HostTouch::faults}),
        nccl_(cuda_, {}) {}

  RankDevice open(int rank) {
    RankDevice opened;
    opened.device = make_cuda_device(cuda_, rank, {});
    opened.device->use_on_this_thread();
    opened.workspace = opened.device->allocate(workspace_bytes + staging_bytes);
    opened.staging = {opened.workspace.data() + workspace_bytes, staging_bytes};
    opened.kernels = make_streamed_kernels(cuda_, *host_kernels_);
    opened.sum = make_streamed_sum(cuda_);
    opened.description = "Fake GPU";
    opened.near_nodes.assign(16, 0);
    return opened;
  }
  RanksOptions options() {
    RanksOptions options;
    options.open_device = [this](int rank) { return open(rank); };
    options.make_nccl = [this] { return make_nccl_job(&nccl_); };
    return options;
  }
  std::vector<std::string> complaints() const { return cuda_.complaints(); }
  std::vector<std::string> left_over() const { return cuda_.leaks(); }
  std::uint64_t num_launches() const { return cuda_.num_launches(); }

 private:
  FakeCuda cuda_;
  FakeNccl nccl_;
  const std::unique_ptr<Kernels> host_kernels_ = make_cpu_kernels({.num_threads = 1});
};

void expect_host_bits(const RunConfig& config, const RanksOutcome& host, const std::string& what) {
  FakeGpus gpus(config.world);
  const RanksOutcome got = train_on_ranks(config, gpus.options());
  EXPECT_EQ(difference(host.outcome, got.outcome), "") << what;
  EXPECT_GT(gpus.num_launches(), 1000u) << "the GPUs compute";
  EXPECT_THAT(gpus.complaints(), IsEmpty()) << what;
  EXPECT_THAT(gpus.left_over(), IsEmpty()) << what;
}

class GpuRanks : public ::testing::TestWithParam<int> {};

TEST_P(GpuRanks, HaveTheBitsOfTheHostInEachStageAndTier) {
  for (const int stage : {1, 2, 3}) {
    RunConfig config = short_config(GetParam(), stage);
    const RanksOutcome host = train_on_ranks(config);
    ASSERT_EQ(host.outcome.losses.size(), 3u);
    for (const TierFractions& tiers :
         {TierFractions{1, 0, 0}, TierFractions{0, 1, 0}, TierFractions{0.3, 0.4, 0.3}}) {
      place_state(config, tiers);
      expect_host_bits(config, host,
                       "stage " + std::to_string(stage) + " gpu " + std::to_string(tiers.device));
    }
  }
}

TEST_P(GpuRanks, HaveTheBitsOfTheHostInPlacementsAtRandom) {
  RunConfig config = short_config(GetParam(), 3);
  const RanksOutcome host = train_on_ranks(config);
  config.offload.streamed_updates = 0.5;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    place_ranks_randomly(config, seed);
    expect_host_bits(config, host, "seed " + std::to_string(seed));
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, GpuRanks, ::testing::Values(2, 3));

TEST(GpuRanksThatFail, EndTheRunWithOneReasonAndGiveAllBack) {
  FakeGpus gpus(2);
  RanksOptions options = gpus.options();
  options.change = [](testing::RankSetup& setup) {
    if (setup.rank != 1) return;
    setup.executor.before_op = [ops = std::make_shared<std::atomic<int>>(0)](const Op&) {
      if (++*ops == 200) throw Error("the test says so");
    };
  };
  EXPECT_THAT([&] { train_on_ranks(short_config(2, 3), options); },
              ThrowsMessage<Error>(AllOf(HasSubstr("rank 1: "), HasSubstr("the test says so"))));
  EXPECT_THAT(gpus.left_over(), IsEmpty());
}

}  // namespace
}  // namespace strata
