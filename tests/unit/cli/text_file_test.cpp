#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "src/cli/text_file.hpp"
#include "strata/core/error.hpp"
#include "strata/core/plain_file.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

class TextFile : public ::testing::Test {
 protected:
  TextFile() {
    std::string pattern = ::testing::TempDir() + "strata-text-file-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~TextFile() override { fs::remove_all(folder_); }
  fs::path path(const std::string& name) const { return folder_ / name; }
  std::ptrdiff_t num_files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

 private:
  fs::path folder_;
};

TEST_F(TextFile, IsMadeAndReplacedWithNothingLeftBeside) {
  replace_text_file(path("a"), "one, which is long");
  EXPECT_EQ(read_text_file(path("a")), "one, which is long");
  replace_text_file(path("a"), "two");
  EXPECT_EQ(read_text_file(path("a")), "two");
  EXPECT_EQ(num_files(), 1);
}

TEST_F(TextFile, IsReachedThroughALinkThatStays) {
  replace_text_file(path("a"), "one");
  fs::create_symlink("a", path("link"));
  replace_text_file(path("link"), "two");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_text_file(path("a")), "two");
}

TEST_F(TextFile, MayBeADeviceThatIsWrittenTo) {
  replace_text_file("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(TextFile, LeavesTheOldTextWhereItCannotBeReplaced) {
  EXPECT_THROW(replace_text_file(path("absent/a"), "one"), SystemError);
  fs::create_directory(path("folder"));
  EXPECT_THROW(replace_text_file(path("folder"), "one"), SystemError);
  EXPECT_EQ(num_files(), 1);
}

}  // namespace
}  // namespace strata
