// What a run that died left of an export is reclaimed; what is somebody else's is not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "src/checkpoint/staged_folder.hpp"
#include "strata/checkpoint/hf_folder.hpp"
#include "support/forked_child.hpp"
#include "unit/checkpoint/state_checkpoint_testing.hpp"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class UnfinishedExports : public ::testing::Test {
 protected:
  void make(const std::string& name) const {
    fs::create_directories(folder_.file(name));
    std::ofstream(folder_.file(name + "/model.safetensors")) << "half";
  }
  std::vector<std::string> clear() const {
    return clear_unfinished_exports(folder_.path(),
                                    [](const std::string& target) { return target == "export"; });
  }
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename());
    return names;
  }

  const TempDirectory folder_;
};

TEST_F(UnfinishedExports, AreRemovedWithAllThatIsInThem) {
  make("export.tmp-12");
  make("export.tmp-12.3");
  std::ofstream(folder_.file("export.tmp-7")) << "a file";
  EXPECT_THAT(clear(), ElementsAre("export.tmp-12", "export.tmp-12.3", "export.tmp-7"));
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(UnfinishedExports, AreToldFromWhatIsNotOurs) {
  for (const char* name : {"export", "other.tmp-12", "export.tmp-", "export.tmp-x", "export.tmp-1.",
                           "export.tmp-1.x", "export.tmp-12a"})
    make(name);
  EXPECT_THAT(clear(), IsEmpty());
  EXPECT_EQ(left().size(), 7u);
}

TEST_F(UnfinishedExports, OfNoFolderAreNone) {
  EXPECT_THAT(clear_unfinished_exports(folder_.file("nowhere"), [](const auto&) { return true; }),
              IsEmpty());
}

// --- In a folder that no run owns

class DeadExports : public UnfinishedExports {
 protected:
  std::filesystem::path target() const { return folder_.file("export"); }
  // By a process that is gone when this returns. Returns its name.
  std::string leave_dead(const std::string& name = "export") const {
    return in_child([&] {
      auto* const staged = new StagedFolder(folder_.file(name), 0);
      std::ofstream(staged->path() / "model.safetensors") << "half";
      return staged->path().filename().string();
    });
  }
};

TEST_F(DeadExports, AreRemovedOnceTheirProcessIsGone) {
  const std::string first = leave_dead(), renamed = leave_dead("export-2");
  ASSERT_EQ(left().size(), 2u);
  const auto cleared = clear_dead_exports(target());
  EXPECT_THAT(cleared, ::testing::UnorderedElementsAre(fs::path(folder_.file(first)),
                                                       fs::path(folder_.file(renamed))));
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(DeadExports, GoBeforeTheNextOneIsMade) {
  const std::string dead = leave_dead();
  StagedFolder next(target(), 0);
  EXPECT_THAT(left(), ElementsAre(next.path().filename().string()));
  EXPECT_NE(left().front(), dead);
}

TEST_F(DeadExports, AreToldFromWhatALiveProcessWrites) {
  StagedFolder live(target(), 0);
  EXPECT_EQ(in_child([&] { return std::to_string(clear_dead_exports(target()).size()); }), "0");
  EXPECT_THAT(clear(), IsEmpty()) << "also by who owns the folder";
  std::ofstream(live.path() / "model.safetensors") << "whole";
  live.commit();
  EXPECT_TRUE(fs::exists(target() / "model.safetensors"));
  EXPECT_EQ(std::distance(fs::directory_iterator(target()), {}), 1) << "no lock stays in it";
}

TEST_F(DeadExports, AreToldFromWhatIsNotOurs) {
  make("export.tmp-12");  // nothing to hold
  const std::string other = leave_dead("exporting"), checkpoint = leave_dead("export-x");
  fs::create_directory_symlink(folder_.file(other), folder_.file("export.tmp-77"));
  EXPECT_THAT(clear_dead_exports(target()), IsEmpty());
  EXPECT_EQ(left().size(), 4u);
  EXPECT_TRUE(fs::exists(folder_.file(other) + "/model.safetensors"));
}

TEST_F(DeadExports, OfNoFolderAreNone) {
  EXPECT_THAT(clear_dead_exports(folder_.file("nowhere/export")), IsEmpty());
}

}  // namespace
}  // namespace strata::testing
