// What a versioned run commits with each step, the names of its tiles, and the record in the output
// folder.

#include "src/train/durable_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"
#include "src/train/state_tiles.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class DurableCommits : public ::testing::Test {
 protected:
  DurableCommits()
      : files_(testing::make_training_files(random_model_preset("tiny"))),
        disk_(make_sim_engine({})) {
    disk_->file_system().make_directory("/nvme");
  }

  // The note after step 3 of a run, then a step of each of these, applied or not.
  RunNote note_after(NonFinitePolicy policy, const std::vector<bool>& applied) {
    RunConfig config = testing::tiny_config(files_);
    config.evaluate = false;
    config.non_finite = policy;
    config.offload.versioned = true;
    config.offload.nvme_paths = {"/nvme"};
    config.offload.master = config.offload.moment1 = config.offload.moment2 = {0, 0, 1};
    TierLimits limits;
    limits.drive_bytes = {std::uint64_t{1} << 40};
    const PlannedRun planned =
        plan_run(config, Purpose::train, read_topology(), {0, 1, 0, 1}, limits);
    ResumePoint point;
    point.stores = {"0123456789abcdef", 1, {"/nvme"}};
    DurableRun run(config, planned, *disk_, split_nvme_tiles(planned).state, point);
    const auto store = run.create(Verify::open);
    RunNote note;
    note.step = 3;
    note.updates_applied = 2;
    note.skipped_steps = 1;
    note.micro_batches_seen = 30;
    run.begin(*store, note, 6);
    EXPECT_EQ(store->committed_version(), 3u);
    StepArgs args;
    args.index = note.step;
    for (const bool is_applied : applied) {
      run.commit(args, is_applied);
      ++args.index;
    }
    const DurableNote kept = parse_durable_note(store->committed_note(), store->path());
    EXPECT_EQ(store->committed_version(), static_cast<std::uint64_t>(kept.note.step));
    store->discard();
    return kept.note;
  }

  testing::TrainingFiles files_;
  std::unique_ptr<SimEngine> disk_;
};

TEST_F(DurableCommits, CountUpdatesSkippedStepsAndData) {
  const RunNote note = note_after(NonFinitePolicy::skip_step, {true, false, true});
  EXPECT_EQ(note.step, 6);
  EXPECT_EQ(note.updates_applied, 4);
  EXPECT_EQ(note.skipped_steps, 2);
  EXPECT_EQ(note.micro_batches_seen, 48);
}

TEST_F(DurableCommits, LeaveOutAStepThatEndsTheRun) {
  const RunNote note = note_after(NonFinitePolicy::stop, {true, false});
  EXPECT_EQ(note.step, 4);
  EXPECT_EQ(note.updates_applied, 3);
  EXPECT_EQ(note.skipped_steps, 1);
}

TEST(StateTileName, IsReadAsItIsWritten) {
  const StateTile tile{
      {Role::moment2, "a block, room 7 [0, 1) of 2", DType::q8, 12305}, 8192, 4113, 8192};
  const auto read = parse_state_tile_name(state_tile_name(tile));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->vector, tile.vector);
  EXPECT_EQ(read->first, tile.first);
  EXPECT_EQ(read->count, tile.count);
  EXPECT_EQ(read->room, tile.room);
  for (const char* name :
       {"", "master/a tile 0", "master/a f32 [8192, 4096) of 9000, room 4096",
        "master/a f32 [1, 4096) of 9000, room 4096", "gradient/a f32 [0, 1) of 1, room 4096",
        "master/a f7 [0, 1) of 1, room 4096", "master/a f32 [0, x) of 1, room 4096"})
    EXPECT_FALSE(parse_state_tile_name(name)) << name;
}

TEST(StateRecordFile, IsReadAsItIsWrittenAndRefusedWhenDamaged) {
  const auto disk = make_sim_engine({});
  FileSystem& files = disk->file_system();
  files.make_directory("/out");
  StateRecord record;
  record.current = {"0123456789abcdef", 3, {"/a", "/b"}};
  record.next = {"00000000000000ff", 1, {"/a"}};
  record.others = {{"1123456789abcdef", 2, {"/c"}}};
  write_state_record(files, "/out", record);
  const StateRecord read = read_state_record(files, "/out");
  EXPECT_EQ(read.current, record.current);
  EXPECT_EQ(read.next, record.next);
  EXPECT_EQ(read.others, record.others);

  const std::string path = "/out/versioned_state.json";
  const auto whole = files.read_file(path, 1 << 20);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto bytes = whole;
    bytes[at] ^= std::byte{1};
    files.write_file(path, bytes);
    EXPECT_THAT([&] { read_state_record(files, "/out"); },
                ThrowsMessage<FormatError>(HasSubstr(path)))
        << "byte " << at;
  }
  write_state_record(files, "/out", {});
  EXPECT_FALSE(files.exists(path));
}

TEST(StateRecordFile, IsNotReplacedByOneThatNobodyCouldRead) {
  const auto disk = make_sim_engine({});
  FileSystem& files = disk->file_system();
  files.make_directory("/out");
  StateRecord record;
  record.current = {"0123456789abcdef", 1, {"/a"}};
  record.next = {"00000000000000ff", 1, {"/a"}};
  record.others.assign(62, {"1123456789abcdef", 1, {"/c"}});
  write_state_record(files, "/out", record);
  EXPECT_EQ(read_state_record(files, "/out").others.size(), 62u);
  StateRecord more = record;
  more.others.push_back(record.next);
  EXPECT_THAT([&] { write_state_record(files, "/out", more); },
              ThrowsMessage<ConfigError>(HasSubstr("strata-state-1123456789abcdef-rank* in /c")));
  EXPECT_EQ(read_state_record(files, "/out").current, record.current);
}

}  // namespace
}  // namespace strata
