// Checkpoints taken while training goes on, and commits: what they are given is the state of one
// moment, whatever runs beside them, and training does not feel them.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "strata/core/philox.hpp"
#include "support/execution_modes.hpp"
#include "support/policies.hpp"
#include "support/sanitizers.hpp"
#include "support/toy_program.hpp"
#include "support/toy_ranks.hpp"
#include "support/toy_run.hpp"
#include "unit/runtime/toy_checks.hpp"

namespace strata {
namespace {

using testing::random_saving;
using testing::random_versioned;
using testing::RanksRun;
using testing::roomy_limits;
using testing::rounds;
using testing::run_plainly;
using testing::sim_disk;
using testing::small_program;
using testing::ToyCheckpoints;
using testing::ToyRank;
using testing::ToyRanks;
using testing::ToyRunOptions;
using testing::ToyUpdate;
using testing::Trajectory;
using testing::uneven_shape;

using Bytes = std::vector<std::byte>;
using State = std::map<std::pair<ShardId, int>, Bytes>;

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

// Clipping where the order of updates allows it.
ToyRunOptions options_for(const Policy& policy, ExecutorOptions executor) {
  ToyRunOptions options{.steps = 6, .evaluate_every = 4, .executor = executor};
  if (policy.update_order == UpdateOrder::during_backward) options.max_grad_norm = 0;
  return options;
}

class Saves : public ::testing::TestWithParam<ExecutionMode> {
 public:
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

INSTANTIATE_TEST_SUITE_P(Modes, Saves, testing::all_modes(), testing::mode_name);

TEST_P(Saves, AreOfTheStateThatTheStepBeganWithUnderEveryPlacement) {
  for (const ToyUpdate update : {ToyUpdate::produces_weight, ToyUpdate::updates_weight}) {
    const Program program = small_program(2, update);
    for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(24, 4)); ++seed) {
      const Policy policy = random_saving(seed);
      expect_saved(program, policy, options_for(policy, {GetParam(), seed, Poison::on}), seed);
    }
  }
}

// A sink that takes its time: whatever could overtake it has the time to.
TEST(SlowSaves, AreOvertakenByNoUpdate) {
  const Program program = small_program(2);
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(6, 2)); ++seed) {
    Policy policy = random_saving(seed);
    if (seed < 3) policy = testing::all_on(static_cast<Tier>(seed));
    policy.background_saves = true;
    Saves::expect_saved(program, policy,
                        options_for(policy, {ExecutionMode::threaded, 0, Poison::on}), seed,
                        std::chrono::microseconds(500));
  }
}

// Every rank its own part.
TEST(SavesOfRanks, AreOfEachRanksOwnPartInEveryStage) {
  std::uint64_t seed = 0;
  for (const int world : {2, 3})
    for (int stage = 0; stage < 4; ++stage, ++seed) {
      const Policy policy = random_saving(seed);
      const ToyRanks ranks(uneven_shape(world, stage), policy);
      const ToyRunOptions options =
          options_for(policy, {static_cast<ExecutionMode>(seed % 3), seed, Poison::on});
      std::vector<Witness> witnesses;
      for (int rank = 0; rank < world; ++rank) witnesses.emplace_back(ranks.program(rank));
      const auto engine = sim_disk(seed);
      const RanksRun run = ranks.run(
          engine.get(), [&](int) { return options.executor; },
          [&](ToyRank& toy, int rank, RanksRun& all) {
            ToyRunOptions own = options;
            own.checkpoints = witnesses[static_cast<std::size_t>(rank)].checkpoints(2);
            all.trajectories[static_cast<std::size_t>(rank)] = toy.train(own);
          });
      const Trajectory expected = ranks.plainly(options);
      EXPECT_TRUE(ranks.together(run) == expected) << "stage " << stage;
      for (Witness& witness : witnesses) witness.end();
    }
}

// --- Commits

// The state after each step of a run without any.
std::vector<State> states_after_steps(const Program& program, ToyRunOptions options) {
  std::vector<State> states;
  const auto note = [&](ToyRank& rank) {
    State state;
    for_each_tile(program, [&](ShardId shard, int tile) {
      state[{shard, tile}] = rank.tile(shard, tile);
    });
    states.push_back(std::move(state));
  };
  Policy policy = testing::all_on(Tier::host);
  policy.background_saves = true;
  const Plan plan = make_plan(program, roomy_limits(), policy);
  ++options.steps;  // The state before a step is that after the one before.
  options.executor = {ExecutionMode::serial};
  options.checkpoints = {.every = 1, .before_saving = note};
  run_planned(program, plan, nullptr, options);
  return {states.begin() + 1, states.end()};
}

// Reads what is in the store when it is told to commit: it must be the state after that step.
class StoreReader {
 public:
  StoreReader(const Program& program, const std::vector<State>& states)
      : program_(program), states_(states) {}

  ToyCheckpoints checkpoints(int every) {
    return {.every = every, .on_commit = [this](ToyRank& rank, const StepArgs& args, bool applied) {
              EXPECT_TRUE(applied);
              EXPECT_EQ(args.index, commits_) << "once per step, in order";
              commit(rank, states_.at(static_cast<std::size_t>(commits_++)));
            }};
  }
  std::int64_t commits() const { return commits_; }

 private:
  void commit(ToyRank& rank, const State& right) {
    for_each_tile(program_, [&](ShardId shard, int tile) {
      EXPECT_TRUE(rank.stored_tile(shard, tile) == right.at({shard, tile}))
          << "at commit " << commits_ << " " << program_.shard(shard).name << " tile " << tile;
    });
  }

  const Program& program_;
  const std::vector<State>& states_;
  std::int64_t commits_ = 0;
};

class Commits : public ::testing::TestWithParam<ExecutionMode> {};

INSTANTIATE_TEST_SUITE_P(Modes, Commits, testing::all_modes(), testing::mode_name);

TEST_P(Commits, FindAllThatTheStepMadeInTheStoreAndNothingOfTheNext) {
  for (const ToyUpdate update : {ToyUpdate::produces_weight, ToyUpdate::updates_weight}) {
    const Program program = small_program(2, update);
    ToyRunOptions options{.steps = 5, .evaluate_every = 3};
    const std::vector<State> states = states_after_steps(program, options);
    const Trajectory expected = run_plainly(program, options);
    for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(12, 3)); ++seed) {
      const Policy policy = random_versioned(seed);
      const Plan plan = make_plan(program, roomy_limits(), policy);
      StoreReader reader(program, states);
      options.executor = {GetParam(), seed, Poison::on};
      options.checkpoints = reader.checkpoints(policy.background_saves ? 2 : 0);
      const auto engine = sim_disk(seed);
      EXPECT_TRUE(run_planned(program, plan, engine.get(), options) == expected) << seed;
      EXPECT_EQ(reader.commits(), options.steps);
    }
  }
}

// No rank writes to its store what belongs to the step after, before all have committed. A rank's
// write is told from the one before by what it has committed itself.
TEST(CommitsOfRanks, AreDoneByAllBeforeAnyUpdatesForTheNextStep) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(9, 3)); ++seed) {
    constexpr int world = 3;
    Policy policy = random_versioned(seed);
    policy.background_saves = false;
    const ToyRanks ranks(uneven_shape(world, 1 + static_cast<int>(seed % 3)), policy);
    std::array<std::atomic<std::int64_t>, world> committed{};
    std::array<std::int64_t, world> updating{};  // the step, by each rank's update lane
    const auto fewest = [&] {
      std::int64_t all = committed[0];
      for (const auto& one : committed) all = std::min(all, one.load());
      return all;
    };
    const auto options_of = [&](int rank) {
      ExecutorOptions options{seed % 2 == 0 ? ExecutionMode::threaded : ExecutionMode::seeded,
                              seed * 64 + static_cast<std::uint64_t>(rank)};
      options.before_op = [&, rank](const Op& op) {
        auto& step = updating[static_cast<std::size_t>(rank)];
        if (op.kind != OpKind::norm) return;
        EXPECT_GE(fewest(), step++) << "rank " << rank;
      };
      return options;
    };
    const auto engine = sim_disk(seed);
    const RanksRun run =
        ranks.run(engine.get(), options_of, [&](ToyRank& toy, int rank, RanksRun&) {
          ToyRunOptions options{.steps = 4, .evaluate_every = 0};
          options.checkpoints.on_commit = [&, rank](ToyRank&, const StepArgs&, bool) {
            std::this_thread::sleep_for(std::chrono::milliseconds(rank));
            ++committed[static_cast<std::size_t>(rank)];
          };
          toy.train(options);
        });
    for (int rank = 0; rank < world; ++rank) {
      EXPECT_EQ(run.errors[static_cast<std::size_t>(rank)], "");
      EXPECT_EQ(committed[static_cast<std::size_t>(rank)], 4);
    }
  }
}

}  // namespace
}  // namespace strata
