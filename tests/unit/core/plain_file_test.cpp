#include "strata/core/plain_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "strata/core/error.hpp"
#include "support/file_size_limit.hpp"
#include "support/own_path.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PlainFileTest : public ::testing::Test {
 protected:
  PlainFileTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~PlainFileTest() override { fs::remove_all(folder_); }

  fs::path path(const std::string& name) const { return folder_ / name; }

 private:
  const fs::path folder_ = own_path("plain_file");
};

template <typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST_F(PlainFileTest, GivesBackWhatWasWritten) {
  write_text_file(path("a"), "one two");
  EXPECT_EQ(read_text_file(path("a")), "one two");
  const PlainFile file = PlainFile::open(path("a"));
  EXPECT_EQ(file.size(), 7u);
  std::array<char, 3> word{};
  file.read(4, std::as_writable_bytes(std::span(word)));
  EXPECT_EQ(std::string(word.data(), word.size()), "two");
}

TEST_F(PlainFileTest, RefusesToReplaceAFile) {
  write_text_file(path("a"), "kept");
  EXPECT_THROW(PlainFile::create(path("a")), SystemError);
  EXPECT_EQ(read_text_file(path("a")), "kept");
}

TEST_F(PlainFileTest, NamesThePathOfAMissingFile) {
  EXPECT_THAT(message_of([&] { PlainFile::open(path("absent")); }), HasSubstr("absent"));
}

TEST_F(PlainFileTest, OpensNeitherFoldersNorPipes) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THROW(PlainFile::open(path("pipe")), FormatError);
  EXPECT_THROW(PlainFile::open(path("")), FormatError);
}

TEST_F(PlainFileTest, SaysWhereAFileEndsTooEarly) {
  write_text_file(path("a"), "12345");
  std::array<std::byte, 4> target{};
  EXPECT_THAT(message_of([&] { PlainFile::open(path("a")).read(3, target); }),
              HasSubstr("ends at byte 5, 2 bytes short"));
}

TEST_F(PlainFileTest, RefusesATextBeyondItsLimit) {
  write_text_file(path("a"), "12345");
  EXPECT_EQ(read_text_file(path("a"), 5), "12345");
  EXPECT_THROW(read_text_file(path("a"), 4), FormatError);
}

TEST_F(PlainFileTest, SaysHowMuchRoomThereIsWhenAWriteFails) {
  const FileSizeLimit limit(4096);
  const std::string text(8192, 'x');
  EXPECT_THAT(message_of([&] { write_text_file(path("a"), text); }),
              ::testing::AllOf(HasSubstr("at byte 4096"), HasSubstr("free on its file system")));
}

TEST_F(PlainFileTest, SyncsAFolderAndKnowsItsFreeBytes) {
  EXPECT_NO_THROW(sync_directory(path("")));
  EXPECT_THROW(sync_directory(path("absent")), SystemError);
  EXPECT_GT(free_bytes(path("")), 0u);
}

}  // namespace
}  // namespace strata
