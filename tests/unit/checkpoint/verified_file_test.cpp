#include "src/checkpoint/verified_file.hpp"

#include <cerrno>

#include "checkpoint_testing.hpp"
#include "strata/checkpoint/hf_folder.hpp"
#include "strata/core/error.hpp"
#include "support/file_size_limit.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class VerifiedFileTest : public ::testing::Test {
 protected:
  void write(const std::string& text, std::uint64_t offset, const char* what) {
    file_.write(offset, std::as_bytes(std::span(text)), what);
  }
  std::string failure() {
    return error_of<Error>([&] { file_.finish(); });
  }

  TempFolder folder_;
  const fs::path path_ = folder_ / "a";
  VerifiedFile file_{path_};
};

TEST_F(VerifiedFileTest, HoldsItsPartsInWhateverOrderTheyCame) {
  write("three", 7, "the last");
  write("one ", 0, "the first");
  write("", 4, "nothing");
  write("two", 4, "the middle");
  file_.finish();
  EXPECT_EQ(read_bytes(path_), "one twothree");
}

TEST_F(VerifiedFileTest, MayBeEmpty) {
  file_.finish();
  EXPECT_EQ(fs::file_size(path_), 0u);
}

TEST_F(VerifiedFileTest, ComesBackInSeveralReads) {
  const std::string large(2 * export_read_back_bytes + 4097, 'x');
  write(large, 0, "much");
  write("end", large.size(), "the end");
  file_.finish();
  EXPECT_EQ(read_bytes(path_), large + "end");
}

TEST_F(VerifiedFileTest, NamesThePartThatCameBackDamaged) {
  const std::string large(export_read_back_bytes - 10, 'x');
  write(large, 0, "the first");
  write("across two reads", large.size(), "the second");
  write("whole", large.size() + 16, "the third");
  spoil(path_, large.size() + 15);
  EXPECT_THAT(failure(), AllOf(HasSubstr("does not come back from the drive"),
                               HasSubstr("16 bytes of the second at offset " +
                                         std::to_string(large.size()) + " of " + path_.string())));
}

TEST_F(VerifiedFileTest, TellsOfAFileThatLostItsEnd) {
  write("some bytes", 0, "text");
  fs::resize_file(path_, 9);
  EXPECT_THAT(failure(), HasSubstr(path_.string() + " has 9 bytes, 10 were written"));
}

TEST_F(VerifiedFileTest, TellsOfAFileThatGrew) {
  write("some bytes", 0, "text");
  fs::resize_file(path_, 11);
  EXPECT_THAT(failure(), HasSubstr("has 11 bytes, 10 were written"));
}

TEST_F(VerifiedFileTest, TellsOfAFileThatIsGone) {
  write("some bytes", 0, "text");
  fs::remove(path_);
  try {
    file_.finish();
    FAIL() << "no exception";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.error_number(), ENOENT);
  }
}

TEST_F(VerifiedFileTest, SaysHowMuchRoomThereIsWhereAWriteFails) {
  const FileSizeLimit limit(4096);
  const std::string large(10'000, 'x');
  EXPECT_THAT(error_of<SystemError>([&] { write(large, 0, "much"); }),
              AllOf(HasSubstr(path_.string()), HasSubstr("bytes) free")));
}

TEST(VerifiedFileDeathTest, StopsWhereAPartIsMissing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const TempFolder folder;
        VerifiedFile file(folder / "a");
        file.write(1, std::as_bytes(std::span("x", 1)), "text");
        file.finish();
      },
      "invariant");
}

TEST(VerifiedText, IsWrittenOnce) {
  const TempFolder folder;
  write_verified_text(folder / "a", "text");
  EXPECT_EQ(read_bytes(folder / "a"), "text");
  error_of<SystemError>([&] { write_verified_text(folder / "a", "other"); });
  EXPECT_EQ(read_bytes(folder / "a"), "text");
}

}  // namespace
}  // namespace strata
