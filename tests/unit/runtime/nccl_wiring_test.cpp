// Ranks whose collectives are work of streams, over the fakes of NCCL and CUDA: the bits of the
// plain run, no wait too few, none on a lane's thread for the device; and when one rank fails, no
// other takes for done what a collective left behind that was cut short.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_nccl/nccl_ranks_of_test.hpp"
#include "strata/core/error.hpp"
#include "support/execution_modes.hpp"
#include "support/policies.hpp"
#include "support/sanitizers.hpp"
#include "support/toy_ranks.hpp"
#include "unit/runtime/cuda_toy.hpp"
#include "unit/runtime/toy_checks.hpp"

namespace strata {
namespace {

using testing::CudaToy;
using testing::expect_same;
using testing::FakeCuda;
using testing::FakeCudaOptions;
using testing::FakeNccl;
using testing::FakeNcclOptions;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RanksRun;
using testing::rounds;
using testing::ToyRanks;
using testing::ToyRunOptions;
using testing::ToyShape;
using testing::Trajectory;

constexpr std::uint64_t staging_bytes = 8192;  // little, so that sums come in many chunks

ToyShape shape_of(int world, int zero_stage) {
  return {.layers = 2,
          .layer_elements = 9000,
          .embedding_elements = 9000,
          .tokens = 16,
          .world = world,
          .zero_stage = zero_stage};
}

// A machine of as many devices as ranks, each a toy.
class NcclToys {
 public:
  NcclToys(ToyRanks& ranks, std::uint64_t seed, const FakeNcclOptions& options = {})
      : cuda_(std::make_shared<FakeCuda>(
            FakeCudaOptions{.seed = seed, .num_devices = ranks.world()})),
        nccl_(*cuda_, options) {
    for (int rank = 0; rank < ranks.world(); ++rank) {
      toys_.push_back(std::make_unique<CudaToy>(cuda_, rank));
      staging_.push_back(toys_.back()->device().allocate(staging_bytes));
    }
    ranks.set_hardware([this](int rank) { return toy(rank).hardware(); });
    ranks.set_carrier([this](RankLinks& links) { join(links); });
  }

  CudaToy& toy(int rank) { return *toys_[static_cast<std::size_t>(rank)]; }
  std::uint64_t num_groups() const { return nccl_.num_groups(); }
  // Once the ranks have left.
  void expect_clean() {
    job_.reset();
    EXPECT_THAT(cuda_->complaints(), IsEmpty());
    EXPECT_THAT(nccl_.complaints(), IsEmpty());
    EXPECT_THAT(nccl_.leaks(), IsEmpty());
  }

 private:
  void join(RankLinks& links) {
    const int rank = links.data->rank();
    const Slab& staging = staging_[static_cast<std::size_t>(rank)];
    job_->join(links, toy(rank).device(),
               {.staging = {staging.data(), staging.bytes()},
                .sum = testing::make_streamed_sum(*cuda_),
                .timeout_s = 60,
                .watch_s = 0.001,
                .soon_s = 0.002});
  }

  std::shared_ptr<FakeCuda> cuda_;
  FakeNccl nccl_;
  std::vector<std::unique_ptr<CudaToy>> toys_;
  std::vector<Slab> staging_;
  std::unique_ptr<NcclJob> job_ = make_nccl_job(&nccl_, {.inside_s = 60});
};

class NcclWiring : public ::testing::TestWithParam<ExecutionMode> {
 protected:
  void SetUp() override {
    if (GetParam() == ExecutionMode::serial) GTEST_SKIP() << "collectives need lanes";
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, NcclWiring, testing::all_modes(), testing::mode_name);

TEST_P(NcclWiring, GivesThePlainBitsToRanks) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(12, 3)); ++seed) {
    const int world = seed % 4 == 3 ? 3 : 2;
    ToyRanks ranks(shape_of(world, 1 + static_cast<int>(seed % 3)), testing::random_policy(seed));
    NcclToys toys(ranks, seed, {.seed = seed});
    ToyRunOptions options{.steps = 3, .evaluate_every = 2};
    const Trajectory expected = ranks.plainly(options);
    options.executor = {GetParam(), seed, Poison::on};
    SimOptions disk_options;
    disk_options.seed = seed;
    const auto disk = make_sim_engine(disk_options);
    const RanksRun run = ranks.train(disk.get(), options);
    expect_same(expected, ranks.together(run), "seed " + std::to_string(seed));
    toys.expect_clean();
  }
}

// The lanes of all ranks are told apart from their other threads, which may wait for the device.
TEST(NcclLanes, DoNotWaitForTheDevice) {
  ToyRanks ranks(shape_of(2, 3), testing::random_policy(1));
  NcclToys toys(ranks, 5);
  const auto disk = make_sim_engine({});
  const RanksRun run = ranks.train(disk.get(), {.steps = 2}, [&](int rank) {
    ExecutorOptions options;
    options.on_lane_start = [&toys, rank](Lane lane) {
      toys.toy(rank).fake().forbid_waiting(std::string(lane_name(lane)));
    };
    return options;
  });
  EXPECT_THAT(run.errors, ::testing::Each(""));
  toys.expect_clean();
}

// An op of rank 1 fails; rank 0 is in the middle of a collective, or of anything else.
TEST_P(NcclWiring, EndsAllRanksWithOneReasonWhicheverOpFails) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(30, 6)); ++seed) {
    ToyRanks ranks(shape_of(2, 3), testing::random_policy(seed));
    NcclToys toys(ranks, seed, {.seed = seed});
    const auto disk = make_sim_engine({});
    const RanksRun run = ranks.train(disk.get(), {.steps = 4}, [&](int rank) {
      ExecutorOptions options{GetParam(), seed};
      auto left = std::make_shared<std::atomic<int>>(static_cast<int>(10 + 7 * seed));
      if (rank == 1)
        options.before_op = [left](const Op&) {
          if ((*left)-- == 0) throw Error("the disk is full");
        };
      return options;
    });
    EXPECT_THAT(run.failure, HasSubstr("rank 1: step ")) << "seed " << seed;
    for (const std::string& error : run.errors) EXPECT_THAT(error, HasSubstr("the disk is full"));
    toys.expect_clean();
  }
}

// A run that ends with collectives, of which the last one on rank 1 hangs, or the one before ...
class HangingRun {
 public:
  HangingRun(ExecutionMode mode, const FakeNcclOptions& options)
      : ranks_(shape_of(2, 3), testing::random_policy(2)), toys_(ranks_, 7, options) {
    const auto disk = make_sim_engine({});
    ToyRunOptions run{.steps = 2, .evaluate_every = 0};
    run.executor = {mode, 7};
    run_ = ranks_.train(disk.get(), run);
  }
  const RanksRun& run() const { return run_; }
  NcclToys& toys() { return toys_; }

 private:
  ToyRanks ranks_;
  NcclToys toys_;
  RanksRun run_;
};

TEST_P(NcclWiring, TakesNoCollectiveForDoneThatWasCutShort) {
  HangingRun whole(GetParam(), {});
  EXPECT_THAT(whole.run().errors, ::testing::Each(""));
  const std::uint64_t groups = whole.toys().num_groups() / 2;
  ASSERT_GT(groups, 20u);
  for (std::uint64_t back = 1; back <= 10; ++back) {
    HangingRun cut(GetParam(), {.hanging_rank = 1,
                                .hanging_group = groups - (back < 5 ? back : back * groups / 11),
                                .tells_of_hang = true});
    EXPECT_THAT(cut.run().failure, HasSubstr("ncclRemoteError (6)")) << back;
    for (const std::string& error : cut.run().errors)
      EXPECT_THAT(error, HasSubstr("ncclRemoteError (6)")) << back;
    for (const Trajectory& trajectory : cut.run().trajectories)
      EXPECT_THAT(trajectory.losses, IsEmpty()) << "a run that ended well, by what it knew";
    cut.toys().expect_clean();
  }
  whole.toys().expect_clean();
}

}  // namespace
}  // namespace strata
