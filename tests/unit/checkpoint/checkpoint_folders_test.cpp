// The checkpoints of one folder: what counts as one, what is cleared away, what retention removes.

#include "src/checkpoint/checkpoint_names.hpp"
#include "unit/checkpoint/checkpoint_testing.hpp"
#include "unit/checkpoint/state_checkpoint_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<StateVector> one_vector() { return {{Role::master, "a", DType::f32, 10}}; }

class CheckpointFolders : public ::testing::Test {
 protected:
  FileSystem& files() { return engine_->file_system(); }
  void save_steps(const std::vector<std::int64_t>& steps) {
    for (const std::int64_t step : steps)
      save(*engine_, out, step, one_vector(), static_cast<std::uint64_t>(step));
  }
  std::vector<std::int64_t> kept(std::int64_t keep, std::int64_t verified,
                                 std::optional<std::int64_t> kept_step = {}) {
    remove_old_checkpoints(files(), out, keep, verified, kept_step);
    return steps_in(files(), out);
  }

  const std::unique_ptr<SimEngine> engine_ = make_sim_engine({});
};

TEST(CheckpointNames, AreReadBackAsTheyWereMade) {
  for (const FolderState state :
       {FolderState::whole, FolderState::partial, FolderState::removing, FolderState::replaced}) {
    const auto name = parse_folder_name(folder_name(1200, state));
    ASSERT_TRUE(name);
    EXPECT_EQ(name->step, 1200);
    EXPECT_EQ(name->state, state);
  }
  EXPECT_TRUE(parse_folder_name("checkpoint-0"));
  for (const char* other :
       {"checkpoint-", "checkpoint-01", "checkpoint--1", "checkpoint-1.tmp", "checkpoint-1a",
        "checkpoint-9999999999999999999", "xcheckpoint-1", "checkpoint-.partial", ""})
    EXPECT_FALSE(parse_folder_name(other)) << other;
}

TEST(CheckpointNames, SplitPaths) {
  EXPECT_EQ(base_name("/out/checkpoint-1/"), "checkpoint-1");
  EXPECT_EQ(base_name("checkpoint-1"), "checkpoint-1");
  EXPECT_EQ(parent_path("/out/checkpoint-1/"), "/out");
  EXPECT_EQ(parent_path("/checkpoint-1"), "/");
  EXPECT_EQ(parent_path("checkpoint-1"), ".");
}

TEST_F(CheckpointFolders, ListsTheWholeOnesByStep) {
  save_steps({20, 3, 100});
  files().make_directory(out + "/checkpoint-7.partial");
  files().make_directory(out + "/checkpoint-8");  // as Hugging Face names its own
  files().write_file(out + "/checkpoint-9", {});
  EXPECT_THAT(steps_in(files(), out), ElementsAre(3, 20, 100));
  EXPECT_EQ(list_checkpoints(files(), out)[1].path, out + "/checkpoint-20");
  EXPECT_THAT(list_checkpoints(files(), "/nowhere"), IsEmpty());
}

TEST_F(CheckpointFolders, ClearsWhatRunsThatDiedLeftAndNothingElse) {
  save_steps({1, 2});
  files().rename(out + "/checkpoint-2", out + "/checkpoint-2.removing");
  files().make_directory(out + "/checkpoint-3.partial");
  files().write_file(out + "/checkpoint-3.partial/00000-master.bin", {});
  files().make_directory(out + "/logs.partial");
  EXPECT_THAT(clear_unfinished_checkpoints(files(), out),
              ElementsAre("checkpoint-2.removing", "checkpoint-3.partial"));
  EXPECT_THAT(files().list(out), ElementsAre("checkpoint-1", "logs.partial"));
  EXPECT_THAT(clear_unfinished_checkpoints(files(), out), IsEmpty());
  EXPECT_THAT(clear_unfinished_checkpoints(files(), "/nowhere"), IsEmpty());
}

TEST_F(CheckpointFolders, GivesAReplacedOneItsNameBackWhereNoNewOneTookIt) {
  save_steps({1, 2});
  files().rename(out + "/checkpoint-1", out + "/checkpoint-1.replaced");
  EXPECT_THAT(clear_unfinished_checkpoints(files(), out), ElementsAre("checkpoint-1.replaced"));
  EXPECT_TRUE(is_good(*engine_, out + "/checkpoint-1", 1));
  files().rename(out + "/checkpoint-1", out + "/checkpoint-2.replaced");
  clear_unfinished_checkpoints(files(), out);
  EXPECT_THAT(files().list(out), ElementsAre("checkpoint-2"));
  EXPECT_TRUE(is_good(*engine_, out + "/checkpoint-2", 2));
}

TEST_F(CheckpointFolders, RemovesOneAndWhatAnEarlierRemovalLeft) {
  save_steps({1, 2});
  files().make_directory(out + "/checkpoint-1.removing");
  remove_checkpoint(files(), out + "/checkpoint-1/");
  EXPECT_THAT(files().list(out), ElementsAre("checkpoint-2"));
}

TEST_F(CheckpointFolders, RemovesNothingThatIsNoCheckpoint) {
  files().make_directory(out + "/checkpoint-1");
  files().make_directory(out + "/data");
  for (const char* name : {"/checkpoint-1", "/data", "/checkpoint-2"})
    EXPECT_THAT(error_of<ConfigError>([&] { remove_checkpoint(files(), out + name); }),
                HasSubstr("is no checkpoint of Strata"));
  EXPECT_THAT(files().list(out), ElementsAre("checkpoint-1", "data"));
}

TEST_F(CheckpointFolders, KeepsTheLastOnes) {
  save_steps({1, 2, 3, 10, 20});
  EXPECT_THAT(kept(4, 20), ElementsAre(2, 3, 10, 20));
  EXPECT_THAT(kept(4, 20), ElementsAre(2, 3, 10, 20));
  EXPECT_THAT(kept(1, 20), ElementsAre(20));
}

TEST_F(CheckpointFolders, KeepsTheVerifiedOneAndAllNewer) {
  save_steps({1, 2, 3, 10, 20});
  EXPECT_THAT(kept(1, 3), ElementsAre(3, 10, 20));
  EXPECT_THAT(kept(1, 3), ElementsAre(3, 10, 20));
}

// As transformers does with the best one.
TEST_F(CheckpointFolders, KeepsOneThatItIsToldToInPlaceOfAnother) {
  save_steps({1, 2, 3, 10, 20});
  EXPECT_THAT(kept(4, 20, 1), ElementsAre(1, 3, 10, 20));
  EXPECT_THAT(kept(2, 20, 10), ElementsAre(10, 20)) << "it is among the last";
  save_steps({30, 40});
  EXPECT_THAT(kept(2, 40, 10), ElementsAre(10, 40));
}

TEST_F(CheckpointFolders, KeepsOneMoreWhereItIsToKeepOneAndThatIsNotTheLast) {
  save_steps({1, 2, 3, 10});
  EXPECT_THAT(kept(1, 10, 2), ElementsAre(2, 10));
  EXPECT_THAT(kept(1, 10, 2), ElementsAre(2, 10));
  EXPECT_THAT(kept(1, 10, 10), ElementsAre(10));
}

TEST_F(CheckpointFolders, KeepsNoMoreForOneThatIsNotThere) {
  save_steps({1, 2, 3});
  EXPECT_THAT(kept(2, 3, 7), ElementsAre(2, 3));
}

TEST_F(CheckpointFolders, RemovesNothingWhenTheVerifiedOneIsNotThere) {
  save_steps({1, 2, 3});
  EXPECT_THAT(kept(1, 4), ElementsAre(1, 2, 3));
}

TEST_F(CheckpointFolders, NeverRemovesAll) {
  save_steps({5});
  EXPECT_THAT(kept(1, 5), ElementsAre(5));
}

TEST(CheckpointRetention, OfNoneIsABrokenInvariant) {
  EXPECT_DEATH(remove_old_checkpoints(posix_file_system(), "nowhere", 0, 5), "broken invariant");
}

}  // namespace
}  // namespace strata::testing
