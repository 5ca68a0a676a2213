#include "support/toy_ranks.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "strata/core/error.hpp"
#include "support/policies.hpp"

namespace strata::testing {
namespace {

constexpr double comm_timeout_s = 60;  // in no test that passes

void train_rank(ToyRank& toy, std::size_t rank, const ToyRunOptions& options, RanksRun& run) {
  run.trajectories[rank] = toy.train(options);
  run.train[rank] = toy.executor().last_timing("train");
  run.eval[rank] = toy.executor().last_timing("eval");
}

}  // namespace

ToyShape one_rank_shape(ToyShape shape) {
  shape.micro_batches *= shape.world;
  shape.group = 1;
  shape.kept_layers = 0;
  shape.world = 1;
  shape.rank = 0;
  return shape;
}

ToyRanks::ToyRanks(const ToyShape& shape, const Policy& policy) : shape_(shape) {
  for (shape_.rank = 0; shape_.rank < shape_.world; ++shape_.rank) {
    programs_.push_back(make_toy_program(shape_));
    plans_.push_back(make_plan(programs_.back(), roomy_limits(), policy));
  }
  const std::vector<Violation> violations = verify(programs_.front(), plans_.front());
  EXPECT_TRUE(violations.empty()) << violations.front().what;
}

RanksRun ToyRanks::run(IoEngine* engine, const RankOptions& rank_options,
                       const std::function<void(ToyRank&, int, RanksRun&)>& body) const {
  const auto ranks = static_cast<std::size_t>(world());
  std::vector<RankLinks> links = make_local_ranks(world(), {.timeout_s = comm_timeout_s});
  RanksRun run{std::vector<Trajectory>(ranks), std::vector<StepTiming>(ranks),
               std::vector<StepTiming>(ranks), std::vector<std::string>(ranks), ""};
  const auto run_rank = [&](int rank) {
    RankLinks& own = links[static_cast<std::size_t>(rank)];
    const auto device = make_host_device({});
    const auto stream = device->make_stream("rank");
    try {
      carrier_(own);
      ToyRank toy(program(rank), plan(rank), engine, own.data.get(), rank_options(rank),
                  hardware_(rank));
      own.control->barrier(*stream);
      body(toy, rank, run);
      own.control->barrier(*stream);
    } catch (const Error& error) {
      run.errors[static_cast<std::size_t>(rank)] = error.what();
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world(); ++rank) threads.emplace_back(run_rank, rank);
  for (std::thread& thread : threads) thread.join();
  run.failure = links.front().control->failure();
  return run;
}

RanksRun ToyRanks::train(IoEngine* engine, const ToyRunOptions& options,
                         const RankOptions& rank_options) const {
  return run(engine, rank_options, [&](ToyRank& toy, int rank, RanksRun& run) {
    train_rank(toy, static_cast<std::size_t>(rank), options, run);
  });
}

RanksRun ToyRanks::train(IoEngine* engine, const ToyRunOptions& options) const {
  return train(engine, options, [&](int rank) {
    ExecutorOptions own = options.executor;
    own.seed = options.executor.seed * 64 + static_cast<std::uint64_t>(rank);
    return own;
  });
}

Trajectory ToyRanks::together(const RanksRun& run) const {
  Trajectory all = run.trajectories.front();
  for (std::size_t rank = 0; rank < run.trajectories.size(); ++rank) {
    Trajectory own = run.trajectories[rank];
    EXPECT_EQ(run.errors[rank], "") << "rank " << rank;
    own.weights = all.weights;
    EXPECT_TRUE(own == all) << "rank " << rank << " has other losses than rank 0";
  }
  all.weights.clear();
  for (const Shard& shard : programs_.front().shards)
    if (shard.role == Role::weight)
      all.weights.push_back(weight_together(run, shard, all.weights.size()));
  return all;
}

std::vector<std::byte> ToyRanks::weight_together(const RanksRun& run, const Shard& weight,
                                                 std::size_t block) const {
  const auto bytes = static_cast<std::size_t>(
      storage_bytes(weight.dtype, programs_.front().model_elements(weight.id)));
  std::vector<std::byte> all;
  for (const Trajectory& trajectory : run.trajectories) {
    if (block >= trajectory.weights.size()) return {};  // a rank that did not end well
    std::vector<std::byte> own = trajectory.weights[block];
    if (weight.sharing == Sharing::sliced) {
      all.insert(all.end(), own.begin(), own.end());
      continue;
    }
    own.resize(bytes);
    if (all.empty()) all = own;
    EXPECT_TRUE(own == all) << "ranks have different weights of block " << block;
  }
  EXPECT_GE(all.size(), bytes);
  all.resize(bytes);
  return all;
}

Trajectory ToyRanks::plainly(const ToyRunOptions& options) const {
  return run_plainly(make_toy_program(one_rank_shape(shape_)), options, world());
}

}  // namespace strata::testing
