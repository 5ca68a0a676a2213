// What a run that died left of an export is reclaimed; what is somebody else's is not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "strata/checkpoint/hf_folder.hpp"
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
    return clear_unfinished_exports(
        folder_.path(), [](const std::string& target) { return target == "export"; });
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

}  // namespace
}  // namespace strata::testing
