// The power fails, or the process dies, at every change that saving and removing checkpoints make
// to the disk, each time in a history of its own. Afterwards whatever is listed opens, verifies and
// has the bytes that were saved, what stood before still stands, and the rest can be cleared away.

#include <map>
#include <set>
#include <tuple>

#include "support/sanitizers.hpp"
#include "unit/checkpoint/checkpoint_testing.hpp"
#include "unit/checkpoint/state_checkpoint_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::Contains;
using ::testing::IsSubsetOf;

constexpr std::uint64_t never = ~std::uint64_t{0};

constexpr Cut cut_for_two = {.world = 2, .tile_elements = norm_chunk_elements};

// By step, the stamps of the bytes that its checkpoint may have.
using Allowed = std::map<std::int64_t, std::set<std::uint64_t>>;

struct Scenario {
  const char* name;
  void (*before)(IoEngine&);  // durable when the scenario begins
  void (*act)(IoEngine&);     // the power fails in it
  Allowed allowed;
  std::set<std::int64_t> certain;  // steps that are there whatever happens
};

void save_step(IoEngine& engine, std::int64_t step, std::uint64_t stamp) {
  save(engine, out, step, few_vectors(), stamp, cut_for_two);
}
void keep_last(IoEngine& engine, std::int64_t keep, std::int64_t verified) {
  remove_old_checkpoints(engine.file_system(), out, keep, verified);
}

std::vector<Scenario> scenarios() {
  return {{"ASave",
           [](IoEngine& engine) { save_step(engine, 10, 1); },
           [](IoEngine& engine) { save_step(engine, 20, 2); },
           {{10, {1}}, {20, {2}}},
           {10}},
          {"TheFirstSave",
           [](IoEngine&) {},
           [](IoEngine& engine) { save_step(engine, 20, 2); },
           {{20, {2}}},
           {}},
          {"ASaveOfTheSameStep",
           [](IoEngine& engine) {
             save_step(engine, 10, 1);
             save_step(engine, 20, 2);
           },
           [](IoEngine& engine) { save_step(engine, 20, 3); },
           {{10, {1}}, {20, {2, 3}}},
           {10, 20}},
          {"ARemoval",
           [](IoEngine& engine) {
             for (const int step : {10, 20, 30}) save_step(engine, step, 1);
           },
           [](IoEngine& engine) { keep_last(engine, 1, 30); },
           {{10, {1}}, {20, {1}}, {30, {1}}},
           {30}},
          {"ASaveAndARemoval",
           [](IoEngine& engine) { save_step(engine, 10, 1); },
           [](IoEngine& engine) {
             save_step(engine, 20, 2);
             keep_last(engine, 1, 20);
           },
           {{10, {1}}, {20, {2}}},
           {}}};
}

class History {
 public:
  History(const Scenario& scenario, std::uint64_t seed)
      : scenario_(scenario), engine_(make_sim_engine({.seed = seed, .chunk_bytes = 8192})) {
    scenario_.before(*engine_);
    begin_ = engine_->changes();
  }

  // Whether it came to its end, with the power failing after so many changes.
  bool run(std::uint64_t changes) {
    engine_->power_fails_at(changes == never ? never : begin_ + changes);
    try {
      scenario_.act(*engine_);
    } catch (const Error&) {
      return false;
    }
    return true;
  }
  std::uint64_t changes() const { return engine_->changes() - begin_; }

  void cut_power() { engine_->cut_power(); }
  void kill_process() { engine_->power_fails_at(never); }

  // What the next run finds.
  void check() {
    const auto at_first = check_listed();
    clear_unfinished_checkpoints(files(), out);
    const auto steps = check_listed();
    EXPECT_THAT(at_first, IsSubsetOf(steps)) << "clearing away took one";
    EXPECT_EQ(files().list(out).size(), steps.size()) << "something was left";
    for (const std::int64_t step : scenario_.certain) EXPECT_THAT(steps, Contains(step));
    EXPECT_TRUE(!steps.empty() || !scenario_.allowed.contains(10)) << "all are lost";
  }
  // And that it can go on.
  void go_on() {
    save_step(*engine_, 20, 7);
    EXPECT_TRUE(is_good(*engine_, out + "/checkpoint-20", 7));
    keep_last(*engine_, 1, 20);
    EXPECT_THAT(steps_in(files(), out), Contains(20));
  }

 private:
  FileSystem& files() { return engine_->file_system(); }
  std::vector<std::int64_t> check_listed() {
    const auto entries = list_checkpoints(files(), out);
    for (const CheckpointEntry& entry : entries) check_one(entry);
    return steps_in(files(), out);
  }
  void check_one(const CheckpointEntry& entry) {
    ASSERT_TRUE(scenario_.allowed.contains(entry.step)) << entry.path;
    bool has_any = false;
    const auto reader = CheckpointReader::open(*engine_, entry.path);
    EXPECT_THAT(reader->verify(), ::testing::IsEmpty());
    EXPECT_EQ(reader->info().note, note_of_step(entry.step));
    for (const std::uint64_t stamp : scenario_.allowed.at(entry.step))
      has_any = has_any || holds(*reader, stamp);
    EXPECT_TRUE(has_any) << entry.path << " has other bytes than were saved";
  }

  const Scenario scenario_;
  const std::unique_ptr<SimEngine> engine_;
  std::uint64_t begin_ = 0;
};

class CheckpointPowerCut : public ::testing::TestWithParam<std::tuple<Scenario, std::uint64_t>> {
 protected:
  // Calls check(history) with one that ended at every change.
  template <typename Check>
  void at_every_change(Check check) {
    const auto& [scenario, seed] = GetParam();
    History whole(scenario, seed);
    ASSERT_TRUE(whole.run(never));
    EXPECT_GT(whole.changes(), 10u);
    const auto stride = static_cast<std::uint64_t>(rounds(1, 4));  // the seeds begin elsewhere
    for (std::uint64_t at = seed % stride; at < whole.changes(); at += stride) {
      SCOPED_TRACE("at change " + std::to_string(at) + " of " + std::to_string(whole.changes()));
      History history(scenario, seed);
      history.run(at);
      check(history);
      if (HasFailure()) return;
    }
  }
};

TEST_P(CheckpointPowerCut, LeavesOnlyWholeCheckpoints) {
  at_every_change([](History& history) {
    history.cut_power();
    history.check();
    history.go_on();
  });
}

// What the next process has seen and believed holds when the power fails after it.
TEST_P(CheckpointPowerCut, AfterAProcessDiedLeavesOnlyWholeCheckpoints) {
  at_every_change([](History& history) {
    history.kill_process();
    history.check();
    history.cut_power();
    history.check();
    history.go_on();
  });
}

TEST_P(CheckpointPowerCut, AtTheEndLosesNothing) {
  const auto& [scenario, seed] = GetParam();
  History history(scenario, seed);
  ASSERT_TRUE(history.run(never));
  history.cut_power();
  history.check();
}

INSTANTIATE_TEST_SUITE_P(Seeds, CheckpointPowerCut,
                         ::testing::Combine(::testing::ValuesIn(scenarios()),
                                            ::testing::Values(0, 1, 2, 3)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) +
                                  std::to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace strata::testing
