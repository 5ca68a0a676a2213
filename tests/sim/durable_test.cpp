// Runs whose every step is durable: the power fails at any moment, the next run goes on from the
// last committed step, and what comes out is what one run alone gives, to the bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/store/dead_stores.hpp"
#include "io/store/named_stores.hpp"
#include "sim/resumed_run.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"
#include "strata/core/philox.hpp"
#include "strata/topology/topology.hpp"
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

constexpr std::int64_t durable_last_step = 4;
constexpr const char* durable_drive = "/nvme";

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
    config.max_steps = durable_last_step;
    config.evaluate = false;
    config.gradient_accumulation_steps = 6 / world;
    config.output_dir = fresh_folder("run");
    config.save_strategy = SaveStrategy::no;
    config.resume_from_checkpoint = "true";
    OffloadConfig& offload = config.offload;
    offload.nvme_paths = {durable_drive};
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

struct DurableRanks {
  int world = 1, stage = 3;
};

class DurableOverRanks : public Durable, public ::testing::WithParamInterface<DurableRanks> {};

INSTANTIATE_TEST_SUITE_P(By, DurableOverRanks,
                         ::testing::Values(DurableRanks{1, 3}, DurableRanks{2, 3},
                                           DurableRanks{3, 1}),
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
    EXPECT_TRUE(bench.disk().file_system().list(durable_drive).empty());
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
    EXPECT_TRUE(bench.disk().file_system().list(durable_drive).empty());
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
  EXPECT_EQ(resumed.learning_rates.at(durable_last_step),
            whole.learning_rates.at(durable_last_step));
  EXPECT_TRUE(bench.disk().file_system().list(durable_drive).empty());
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
  plain.max_steps = durable_last_step;
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
  EXPECT_EQ(named_store_bytes(bench.disk().file_system(), durable_drive, "strata-state-"), 0u);
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

// --- Output folders that have another name by now

TEST_F(Durable, GoesOnInAFolderThatWasMoved) {
  ResumeBench whole_bench, bench;
  const RunTrail whole = whole_bench.go_on(with_checkpoints(config()), 1);
  const std::uint64_t changes = changes_of(config(), 1);
  RunConfig own = config();
  const std::int64_t step = cut(bench, own, 1, changes / 2);
  ASSERT_GT(step, 0);
  const std::string before = own.output_dir.string();
  own.output_dir = fresh_folder("moved");
  bench.disk().file_system().rename(before, own.output_dir.string());
  EXPECT_EQ(choose_resume_point(own, bench.disk(), alone(), true).moved_from, before);
  // From its next step on the state is that of the folder as it is called now.
  const std::int64_t later = cut(bench, own, 1, changes / 3);
  ASSERT_GT(later, step);
  EXPECT_EQ(point(bench, own)->output_dir, own.output_dir.string());
  EXPECT_EQ(difference_after(later, whole, bench.go_on(own, 1)), "");
  EXPECT_TRUE(bench.disk().file_system().list(durable_drive).empty());
}

TEST_F(Durable, IsNotTakenByACopyOfItsFolder) {
  ResumeBench bench;
  const RunConfig own = config();
  const std::int64_t step = cut(bench, own, 1, changes_of(config(), 1) / 2);
  ASSERT_GT(step, 0);
  RunConfig copy = own;
  copy.output_dir = fresh_folder("copy");
  FileSystem& files = bench.disk().file_system();
  files.make_directory(copy.output_dir.string());
  const std::string record = "/versioned_state.json";
  files.write_file(copy.output_dir.string() + record,
                   files.read_file(own.output_dir.string() + record, 1 << 20));
  EXPECT_THAT(
      [&] { bench.go_on(copy, 1); },
      ThrowsMessage<ConfigError>(AllOf(
          HasSubstr("strata-state-"), HasSubstr("is a copy"), HasSubstr(own.output_dir.string()),
          HasSubstr(copy.output_dir.string()), HasSubstr("remove versioned_state.json"))));
  EXPECT_EQ(point(bench, own)->note.step, step);
  // The original is given up: what was a copy is what there is.
  files.remove(own.output_dir.string() + record);
  const ResumePoint chosen = choose_resume_point(copy, bench.disk(), alone(), true);
  EXPECT_EQ(chosen.moved_from, own.output_dir.string());
  EXPECT_EQ(chosen.note()->step, step);
}

TEST_F(Durable, KnowsItsFolderByAnotherPath) {
  ResumeBench bench;
  RunConfig own = config();
  ASSERT_GT(cut(bench, own, 1, changes_of(config(), 1) / 2), 0);
  const std::filesystem::path link = fresh_folder("links") / "out";
  std::filesystem::create_directory_symlink(own.output_dir, link);
  // The simulated disk has no links: there it is a folder with the same record.
  FileSystem& files = bench.disk().file_system();
  files.make_directory(link.parent_path().string());
  files.make_directory(link.string());
  files.write_file(link.string() + "/versioned_state.json",
                   files.read_file(own.output_dir.string() + "/versioned_state.json", 1 << 20));
  own.output_dir = link;
  EXPECT_EQ(choose_resume_point(own, bench.disk(), alone(), true).moved_from, "");
}

// --- Drives that are nearly full

class DurableOnAFullDrive : public Durable {
 protected:
  DurableOnAFullDrive() : bench_(SimOptions{.capacity_bytes = capacity}) {}
  // Of a run that was cut amid its steps, with so much left of the drive beside its state. Returns
  // the step.
  std::int64_t leave_cut(const RunConfig& own, std::uint64_t left) {
    const std::int64_t step = cut(bench_, own, 1, changes_of(config(), 1) * 3 / 4);
    FileSystem& files = bench_.disk().file_system();
    remove_dead_scratch(files, durable_drive);
    const std::vector<std::byte> filler(files.free_bytes(durable_drive) - left);
    files.write_file("/filler", filler);
    return step;
  }

  static constexpr std::uint64_t capacity = 24 << 20;
  ResumeBench bench_;
};

TEST_F(DurableOnAFullDrive, GoesOnInPlaceWithNextToNoRoom) {
  ResumeBench whole_bench;
  RunConfig own = config();
  own.offload.weights = {0, 1, 0};  // no scratch beside the state
  RunConfig kept = with_checkpoints(own);
  const RunTrail whole = whole_bench.go_on(kept, 1);
  const std::int64_t step = leave_cut(own, 64 << 10);
  ASSERT_GT(step, 0);
  EXPECT_EQ(difference_after(step, whole, bench_.go_on(own, 1)), "");
}

TEST_F(DurableOnAFullDrive, KeepsTheStateWhereANewStoreBesideItDoesNotFit) {
  ResumeBench whole_bench;
  const RunTrail whole = whole_bench.go_on(with_checkpoints(config()), 1);
  const RunConfig own = config();
  const std::int64_t step = leave_cut(own, 2 << 20);
  ASSERT_GT(step, 0);
  const DurablePoint before = *point(bench_, own);
  const std::string state = state_at(bench_, before);
  RunConfig other = own;
  other.offload.tile_bytes = 48 << 10;
  EXPECT_THAT([&] { bench_.go_on(other, 1); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("/nvme needs "), HasSubstr(" free"))));
  EXPECT_EQ(point(bench_, own)->stores, before.stores);
  EXPECT_EQ(state_at(bench_, before), state);
  EXPECT_EQ(difference_after(step, whole, bench_.go_on(own, 1)), "");
}

TEST_F(DurableOnAFullDrive, SaysWhatIsOtherThanInTheRunBefore) {
  const RunConfig own = config();
  ASSERT_GT(leave_cut(own, 2 << 20), 0);
  const auto why = [&](const std::function<void(RunConfig&)>& change) {
    RunConfig other = own;
    change(other);
    const ResumePoint chosen = choose_resume_point(other, bench_.disk(), alone(), true);
    TierLimits limits;
    limits.drive_bytes.assign(other.offload.nvme_paths.size(), std::uint64_t{1} << 40);
    const PlannedRun run =
        plan_run(other, Purpose::train, Topology{}, {0, other.world, 0, other.world}, limits);
    return why_not_in_place(bench_.disk().file_system(), run, chosen);
  };
  EXPECT_EQ(why([](RunConfig&) {}), "");
  EXPECT_THAT(why([](RunConfig& c) { c.offload.tile_bytes = 48 << 10; }),
              HasSubstr("offload.tile_bytes"));
  EXPECT_THAT(why([](RunConfig& c) {
                c.offload.nvme_paths = {"/b", "/c"};
              }),
              AllOf(HasSubstr("/nvme"), HasSubstr("/b, /c")));
  EXPECT_THAT(why([](RunConfig& c) { c.ranks = c.world = 2; }), HasSubstr("ranks was 1 and is 2"));
  EXPECT_THAT(why([](RunConfig& c) { c.offload.versioned = false; }),
              HasSubstr("offload.versioned"));
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
