// Checkpoints taken while training goes on, and commits: what they are given is the state of one
// moment, whatever runs beside them, and training does not feel them.

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "strata/core/philox.hpp"
#include "support/policies.hpp"
#include "support/sanitizers.hpp"
#include "support/toy_program.hpp"
#include "support/toy_ranks.hpp"
#include "support/toy_run.hpp"

namespace strata {
namespace {

using testing::make_toy_program;
using testing::random_saving;
using testing::random_versioned;
using testing::RanksRun;
using testing::roomy_limits;
using testing::rounds;
using testing::run_plainly;
using testing::ToyCheckpoints;
using testing::ToyRank;
using testing::ToyRanks;
using testing::ToyRunOptions;
using testing::ToyShape;
using testing::ToyUpdate;
using testing::Trajectory;

using Bytes = std::vector<std::byte>;
using State = std::map<std::pair<ShardId, int>, Bytes>;

std::unique_ptr<SimEngine> sim_disk(std::uint64_t seed) {
  SimOptions options;
  options.seed = seed;
  options.latency_us_max = 10;
  options.short_transfer_probability = 0.05;
  return make_sim_engine(options);
}

bool is_state(Role role) {
  return role == Role::master || role == Role::moment1 || role == Role::moment2;
}

// Calls visit(shard, tile) for each tile of master and moments that the rank has.
template <typename Visit>
void for_each_tile(const Program& program, Visit visit) {
  for (const Shard& shard : program.shards)
    for (int tile = 0; is_state(shard.role) && tile < program.num_tiles(shard.id); ++tile)
      visit(shard.id, tile);
}

bool is_own(const Program& program, ShardId shard, int tile) {
  return program.is_own(shard, tile) &&
         program.place_begin(shard, program.place(shard, tile)) < program.model_elements(shard);
}

// Compares what is saved with the state that the step begins with.
class Witness {
 public:
  explicit Witness(const Program& program) : program_(program) {}

  ToyCheckpoints checkpoints(int every) {
    return {.every = every,
            .before_saving = [this](ToyRank& rank) { expect_saved(rank); },
            .on_save = [this](ShardId shard, int tile, std::span<const std::byte> bytes,
                              std::span<const std::byte>) { save(shard, tile, bytes); }};
  }
  // Of the last step too.
  void end() {
    EXPECT_TRUE(to_come_.empty()) << to_come_.size() << " tiles were not saved";
    EXPECT_GT(saved_, 0);
  }
  void delay_each(std::chrono::microseconds time) { delay_ = time; }

 private:
  void expect_saved(ToyRank& rank) {
    EXPECT_TRUE(to_come_.empty()) << to_come_.size() << " tiles were not saved";
    for_each_tile(program_, [&](ShardId shard, int tile) {
      if (is_own(program_, shard, tile)) to_come_[{shard, tile}] = rank.tile(shard, tile);
    });
  }
  void save(ShardId shard, int tile, std::span<const std::byte> bytes) {
    std::this_thread::sleep_for(delay_);
    const auto found = to_come_.find({shard, tile});
    ASSERT_NE(found, to_come_.end()) << "saved twice, or no part of the state";
    EXPECT_TRUE(std::ranges::equal(bytes, found->second))
        << program_.shard(shard).name << " tile " << tile << " is not as the step found it";
    to_come_.erase(found);
    ++saved_;
  }

  const Program& program_;
  State to_come_;
  int saved_ = 0;
  std::chrono::microseconds delay_{0};
};

Program small_program(ToyUpdate update = ToyUpdate::produces_weight) {
  return make_toy_program({.layers = 2,
                           .micro_batches = 2,
                           .layer_elements = 5000,
                           .embedding_elements = 9000,
                           .tokens = 32,
                           .update = update});
}

// Clipping where the order of updates allows it.
ToyRunOptions options_for(const Policy& policy, ExecutorOptions executor) {
  ToyRunOptions options{.steps = 6, .evaluate_every = 4, .executor = executor};
  if (policy.update_order == UpdateOrder::during_backward) options.max_grad_norm = 0;
  return options;
}

class Saves : public ::testing::TestWithParam<ExecutionMode> {
 protected:
  static void expect_saved(const Program& program, const Policy& policy, ToyRunOptions options,
                           std::uint64_t seed, std::chrono::microseconds delay = {}) {
    const Plan plan = make_plan(program, roomy_limits(), policy);
    const std::vector<Violation> violations = verify(program, plan);
    EXPECT_TRUE(violations.empty()) << violations.front().what;
    const Trajectory expected = run_plainly(program, options);
    Witness witness(program);
    witness.delay_each(delay);
    options.checkpoints = witness.checkpoints(2);
    const auto engine = sim_disk(seed);
    EXPECT_TRUE(run_planned(program, plan, engine.get(), options) == expected)
        << "training feels saves, seed " << seed;
    witness.end();
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, Saves,
                         ::testing::Values(ExecutionMode::threaded, ExecutionMode::serial,
                                           ExecutionMode::seeded),
                         [](const auto& mode) {
                           return mode.param == ExecutionMode::threaded ? "Threaded"
                                  : mode.param == ExecutionMode::serial ? "Serial"
                                                                        : "Seeded";
                         });

TEST_P(Saves, AreOfTheStateThatTheStepBeganWithUnderEveryPlacement) {
  for (const ToyUpdate update : {ToyUpdate::produces_weight, ToyUpdate::updates_weight}) {
    const Program program = small_program(update);
    for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(24, 4)); ++seed) {
      const Policy policy = random_saving(seed);
      expect_saved(program, policy, options_for(policy, {GetParam(), seed, Poison::on}), seed);
    }
  }
}

}  // namespace
}  // namespace strata
