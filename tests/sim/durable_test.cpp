// Runs whose every step is durable: the power fails at any moment, the next run goes on from the
// last committed step, and what comes out is what one run alone gives, to the bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/store/named_stores.hpp"
#include "sim/resumed_run.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"
#include "strata/core/philox.hpp"
#include "strata/train/durable_state.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using testing::difference_after;
using testing::fresh_folder;
using ::testing::HasSubstr;
using testing::make_training_files;
using testing::ResumeBench;
using testing::RunTrail;
using ::testing::ThrowsMessage;
using testing::tiny_config;

constexpr std::int64_t last_step = 4;
constexpr const char* drive = "/nvme";

// The elements of all vectors.
std::string state_of(const CheckpointReader& reader) {
  std::string text;
  const auto& vectors = reader.info().vectors;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    std::vector<std::byte> bytes(state_vector_bytes(vectors[i]));
    reader.read(static_cast<int>(i), 0, vectors[i].count, bytes);
    text += state_vector_name(vectors[i]);
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return text;
}

class Durable : public ::testing::Test {
 protected:
  Durable() : files_(make_training_files(random_model_preset("tiny"))) {}

  RunConfig config(int world = 1) const {
    RunConfig config = tiny_config(files_);
    config.max_steps = last_step;
    config.evaluate = false;
    config.gradient_accumulation_steps = 6 / world;
    config.output_dir = fresh_folder("run");
    config.save_strategy = SaveStrategy::no;
    config.resume_from_checkpoint = "true";
    OffloadConfig& offload = config.offload;
    offload.nvme_paths = {drive};
    offload.versioned = true;
    offload.master = offload.moment1 = offload.moment2 = {0, 0, 1};
    offload.weights = {0, 0.5, 0.5};
    offload.tile_bytes = 128 << 10;
    return config;
  }
  // The same run, kept at each step by checkpoints.
  static RunConfig with_checkpoints(RunConfig config) {
    config.output_dir = fresh_folder("run");
    config.save_strategy = SaveStrategy::steps;
    config.save_steps = 1;
    return config;
  }
  static std::optional<DurablePoint> point(ResumeBench& bench, const RunConfig& config) {
    const FileSystem& files = bench.disk().file_system();
    return find_durable_point(files, read_state_record(files, config.output_dir.string()), alone());
  }
  static std::string state_at(ResumeBench& bench, const DurablePoint& point) {
    return state_of(*open_durable_state(bench.disk(), point));
  }
  // A run that ends by a power cut, unless it comes to its end before. Returns the last step that
  // it left; -1: none.
  static std::int64_t cut(ResumeBench& bench, const RunConfig& config, int world,
                          std::uint64_t changes) {
    bench.disk().power_fails_at(bench.disk().changes() + changes);
    try {
      bench.go_on(config, world);
    } catch (const Error&) {
      // The power was cut.
    }
    bench.disk().cut_power();
    const auto found = point(bench, config);
    return found ? static_cast<std::int64_t>(found->version) : -1;
  }
  // The changes to the disk that a whole run makes.
  static std::uint64_t changes_of(const RunConfig& config, int world) {
    ResumeBench bench;
    bench.go_on(config, world);
    return bench.disk().changes();
  }

  testing::TrainingFiles files_;
};

struct Ranks {
  int world = 1, stage = 3;
};

class DurableOverRanks : public Durable, public ::testing::WithParamInterface<Ranks> {};

INSTANTIATE_TEST_SUITE_P(By, DurableOverRanks,
                         ::testing::Values(Ranks{1, 3}, Ranks{2, 3}, Ranks{3, 1}),
                         [](const auto& ranks) {
                           return std::to_string(ranks.param.world) + "RanksStage" +
                                  std::to_string(ranks.param.stage);
                         });

TEST_P(DurableOverRanks, SurvivesAPowerCutAtAnyMomentWithTheBitsOfTheLastStep) {
  const auto [world, stage] = GetParam();
  const auto staged = [&, stage = stage](RunConfig config) {
    config.zero_stage = stage;
    return config;
  };
  ResumeBench whole_bench;
  const RunConfig kept = staged(with_checkpoints(config(world)));
  const RunTrail whole = whole_bench.go_on(kept, world);
  const std::uint64_t changes = changes_of(staged(config(world)), world);

  const std::uint64_t seed = 20261130;
  PhiloxStream random(seed, static_cast<std::uint64_t>(world));
  std::map<std::int64_t, int> seen;  // cuts by the step that they left
  for (int round = 0; round < testing::rounds(24, 4); ++round) {
    const std::uint64_t at = random.next_below(changes);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", change " << at << " of " << changes);
    ResumeBench bench(SimOptions{.seed = seed + static_cast<std::uint64_t>(round)});
    const RunConfig own = staged(config(world));
    const std::int64_t step = cut(bench, own, world, at);
    ++seen[step];
    if (step > 0) {
      const auto checkpoint = CheckpointReader::open(
          whole_bench.disk(), (kept.output_dir / ("checkpoint-" + std::to_string(step))).string());
      EXPECT_EQ(state_at(bench, *point(bench, own)), state_of(*checkpoint)) << "step " << step;
    }
    EXPECT_EQ(difference_after(step, whole, bench.go_on(own, world)), "") << "after step " << step;
    EXPECT_TRUE(bench.disk().file_system().list(drive).empty());
    EXPECT_FALSE(
        bench.disk().file_system().exists((own.output_dir / "versioned_state.json").string()));
    if (HasFailure()) return;
  }
  EXPECT_GE(seen.size(), static_cast<std::size_t>(testing::rounds(3, 1)));
}

TEST_F(Durable, GoesOnInPlaceWithoutCopyingTheState) {
  ResumeBench bench;
  const RunConfig own = config();
  const std::uint64_t changes = changes_of(config(), 1);
  const std::int64_t step = cut(bench, own, 1, changes * 3 / 4);
  ASSERT_GT(step, 0);
  const StateStores stores = point(bench, own)->stores;
  EXPECT_EQ(cut(bench, own, 1, 12), step);
  EXPECT_EQ(point(bench, own)->stores, stores);
  // Copied, it would not get to a step: there are three writes of state to one of weights.
  EXPECT_EQ(cut(bench, own, 1, changes / 3), step + 1);
  EXPECT_EQ(point(bench, own)->stores, stores);
}

TEST_F(Durable, GoesOnInAnotherLayoutWithTheSameBitsWhereTheWorldIsTheSame) {
  ResumeBench whole_bench;
  const RunTrail whole = whole_bench.go_on(with_checkpoints(config()), 1);
  const std::uint64_t changes = changes_of(config(), 1);
  const std::vector<std::function<void(RunConfig&)>> others{
      [](RunConfig& c) { c.offload.tile_bytes = 48 << 10; },
      [](RunConfig& c) {
        c.offload.nvme_paths = {"/nvme", "/nvme2"};
      },
      [](RunConfig& c) {
        c.offload.versioned = false;
        c.offload.master = {0.5, 0.5, 0};
      },
      [](RunConfig& c) {
        c.offload.versioned = false;
        c.optimizer_master = MasterFormat::split;
      }};
  for (const auto& change : others) {
    ResumeBench bench;
    RunConfig own = config();
    const std::int64_t step = cut(bench, own, 1, changes * 3 / 4);
    ASSERT_GT(step, 0);
    change(own);
    EXPECT_EQ(difference_after(step, whole, bench.go_on(own, 1)), "");
    EXPECT_TRUE(bench.disk().file_system().list(drive).empty());
  }
}

TEST_F(Durable, GoesOnWithOtherRanks) {
  ResumeBench whole_bench;
  const RunTrail whole = whole_bench.go_on(with_checkpoints(config(3)), 3);
  ResumeBench bench;
  RunConfig own = config(3);
  const std::int64_t step = cut(bench, own, 3, changes_of(config(3), 3) * 3 / 4);
  ASSERT_GT(step, 0);
  own.gradient_accumulation_steps = 3;
  const RunTrail resumed = bench.go_on(own, 2);
  for (const auto& [at, loss] : resumed.steps)
    EXPECT_NEAR(loss.first, whole.steps.at(at).first, 2e-3 * loss.first) << "step " << at;
  EXPECT_EQ(resumed.learning_rates.at(last_step), whole.learning_rates.at(last_step));
  EXPECT_TRUE(bench.disk().file_system().list(drive).empty());
}

TEST_F(Durable, KeepsMomentsOfEightBits) {
  RunConfig own = config();
  own.optimizer_moments = DType::q8;
  ResumeBench whole_bench;
  const RunTrail whole = whole_bench.go_on(with_checkpoints(own), 1);
  for (const std::uint64_t tile_bytes : {128u << 10, 48u << 10}) {
    ResumeBench bench;
    own.output_dir = fresh_folder("run");
    own.offload.tile_bytes = 128 << 10;
    const std::int64_t step = cut(bench, own, 1, changes_of(own, 1) * 3 / 4);
    ASSERT_GT(step, 0);
    own.offload.tile_bytes = tile_bytes;
    EXPECT_EQ(difference_after(step, whole, bench.go_on(own, 1)), "");
  }
}

TEST_F(Durable, YieldsToACheckpointThatIsNewer) {
  ResumeBench bench;
  RunConfig own = config();
  const std::int64_t step = cut(bench, own, 1, changes_of(config(), 1) / 2);
  ASSERT_GE(step, 0);
  // A run of other means goes on from it and leaves checkpoints beside it.
  RunConfig plain = own;
  plain.offload.versioned = false;
  plain.save_strategy = SaveStrategy::steps;
  plain.save_steps = static_cast<double>(step + 1);
  plain.max_steps = last_step;
  EXPECT_THROW(
      {
        bench.disk().power_fails_at(bench.disk().changes() + 400);
        bench.go_on(plain, 1);
        throw Error("it came to its end");
      },
      Error);
  bench.disk().cut_power();
  const auto checkpoints = list_checkpoints(bench.disk().file_system(), own.output_dir.string());
  if (checkpoints.empty() || checkpoints.back().step <= step) GTEST_SKIP() << "it was cut before";
  const ResumePoint chosen = choose_resume_point(own, bench.disk(), alone(), true);
  ASSERT_TRUE(chosen.checkpoint);
  EXPECT_FALSE(chosen.durable);
  EXPECT_EQ(named_store_bytes(bench.disk().file_system(), drive, "strata-state-"), 0u);
}

TEST_F(Durable, IsNotPassedOverByARunThatWasNotToldToGoOn) {
  ResumeBench bench;
  RunConfig own = config();
  const std::int64_t step = cut(bench, own, 1, changes_of(config(), 1) / 2);
  ASSERT_GE(step, 0);
  own.resume_from_checkpoint = "";
  EXPECT_THAT([&] { bench.go_on(own, 1); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("strata-state-"), HasSubstr("resume_from_checkpoint"))));
  const RunConfig other = with_checkpoints(config());
  bench.go_on(other, 1);
  own.resume_from_checkpoint = (other.output_dir / "checkpoint-4").string();
  EXPECT_THAT([&] { bench.go_on(own, 1); },
              ThrowsMessage<ConfigError>(HasSubstr("would be given up")));
  EXPECT_EQ(point(bench, own)->note.step, step);
}

TEST_F(Durable, NamesWhatIsDamagedAndWhatToDo) {
  ResumeBench bench;
  const RunConfig own = config();
  ASSERT_GT(cut(bench, own, 1, changes_of(config(), 1) * 3 / 4), 0);
  FileSystem& files = bench.disk().file_system();
  const std::string store = point(bench, own)->stores.path(0);
  const auto flipped = [&](const std::string& file, std::size_t at) {
    const auto whole = files.read_file(file, 1 << 24);
    auto bytes = whole;
    bytes.at(at) ^= std::byte{1};
    files.write_file(file, bytes);
    return whole;
  };
  for (const std::string name : {"/manifest.0", "/manifest.1", "/store.json"}) {
    const auto whole = flipped(store + name, 40);
    EXPECT_THAT([&] { bench.go_on(own, 1); },
                ThrowsMessage<Error>(
                    AllOf(HasSubstr(store + name), HasSubstr("remove versioned_state.json"))));
    files.write_file(store + name, whole);
  }
  const std::string record = (own.output_dir / "versioned_state.json").string();
  const auto whole_record = flipped(record, 30);
  EXPECT_THAT([&] { bench.go_on(own, 1); }, ThrowsMessage<Error>(HasSubstr(record)));
  files.write_file(record, whole_record);

  // One place of each tile is the committed one.
  const auto tiles = files.read_file(store + "/tiles", 1 << 24);
  auto damaged = tiles;
  for (std::size_t at = 64; at < damaged.size(); at += 4096) damaged[at] ^= std::byte{1};
  files.write_file(store + "/tiles", damaged);
  EXPECT_THAT([&] { bench.go_on(own, 1); },
              ThrowsMessage<Error>(AllOf(HasSubstr("master/"), HasSubstr("is damaged"))));
  EXPECT_FALSE(open_durable_state(bench.disk(), *point(bench, own))->verify().empty());
  files.write_file(store + "/tiles", tiles);
  bench.go_on(own, 1);
}

TEST_F(Durable, IsRefusedWhereAPartOfTheStateIsElsewhere) {
  ResumeBench bench;
  const auto refused = [&](const std::function<void(RunConfig&)>& change) {
    RunConfig own = config();
    change(own);
    return [&bench, own] { bench.go_on(own, 1); };
  };
  EXPECT_THAT(refused([](RunConfig& c) {
                c.offload.moment1 = {0, 0.5, 0.5};
              }),
              ThrowsMessage<Error>(AllOf(HasSubstr("offload.moment1"), HasSubstr("nvme: 1"))));
  EXPECT_THAT(refused([](RunConfig& c) { c.optimizer_master = MasterFormat::split; }),
              ThrowsMessage<Error>(HasSubstr("optimizer_master: fp32")));
}

}  // namespace
}  // namespace strata
