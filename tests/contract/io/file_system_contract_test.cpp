// One suite for every FileSystem.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <string>

#include "contract/io/io_testing.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct FileSystemCase {
  std::string name;
  std::function<std::unique_ptr<IoEngine>()> make;
};

class FileSystemContract : public ::testing::TestWithParam<FileSystemCase> {
 protected:
  void SetUp() override { files_.make_directory(path("")); }

  std::string path(const std::string& name) const {
    return directory_.file("store") + (name.empty() ? "" : "/" + name);
  }
  void write(const std::string& name, const std::string& text) {
    files_.write_file(path(name), std::as_bytes(std::span(text)));
  }
  std::string read(const std::string& name, std::uint64_t bytes_max = 1 * MiB) const {
    const auto bytes = files_.read_file(path(name), bytes_max);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // The action must fail so, and say what it was about.
  template <typename Action>
  void expect_error(int error_number, const std::string& name, Action action) const {
    try {
      action();
      FAIL() << "nothing was thrown about " << path(name);
    } catch (const SystemError& error) {
      EXPECT_EQ(error.error_number(), error_number) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(path(name)));
    }
  }

  TempDirectory directory_;
  std::unique_ptr<IoEngine> engine_ = GetParam().make();
  FileSystem& files_ = engine_->file_system();
};

INSTANTIATE_TEST_SUITE_P(
    FileSystems, FileSystemContract,
    ::testing::Values(FileSystemCase{"posix", [] { return make_threads_engine({}); }},
                      FileSystemCase{"sim", [] { return make_sim_engine({}); }}),
    [](const auto& one) { return one.param.name; });

TEST_P(FileSystemContract, KnowsWhatIsThereAndWhatIsADirectory) {
  write("file", "x");
  EXPECT_TRUE(files_.exists(path("file")));
  EXPECT_FALSE(files_.is_directory(path("file")));
  EXPECT_TRUE(files_.exists(path("")));
  EXPECT_TRUE(files_.is_directory(path("")));
  EXPECT_TRUE(files_.is_directory(path("") + "/"));
  for (const char* missing : {"missing", "file/below"}) {
    EXPECT_FALSE(files_.exists(path(missing)));
    EXPECT_FALSE(files_.is_directory(path(missing)));
  }
}

TEST_P(FileSystemContract, ListsNamesInOrder) {
  EXPECT_THAT(files_.list(path("")), IsEmpty());
  for (const char* name : {"tiles", "manifest", "lock"}) write(name, "");
  files_.make_directory(path("below"));
  write("below/hidden", "");
  EXPECT_THAT(files_.list(path("")), ElementsAre("below", "lock", "manifest", "tiles"));
  expect_error(ENOENT, "missing", [&] { files_.list(path("missing")); });
  expect_error(ENOTDIR, "lock", [&] { files_.list(path("lock")); });
}

TEST_P(FileSystemContract, GivesBackWhatWasWrittenAndReplacesIt) {
  write("file", "a long text");
  EXPECT_EQ(read("file"), "a long text");
  EXPECT_EQ(files_.file_bytes(path("file")), 11u);
  write("file", "short");
  EXPECT_EQ(read("file"), "short");
  EXPECT_EQ(files_.file_bytes(path("file")), 5u);
  write("file", "");
  EXPECT_EQ(read("file"), "");
}

TEST_P(FileSystemContract, RefusesAFileLongerThanExpectedAndSaysHowLongItIs) {
  write("file", "12345");
  EXPECT_EQ(read("file", 5), "12345");
  expect_error(EFBIG, "file", [&] { read("file", 4); });
  try {
    read("file", 4);
  } catch (const SystemError& error) {
    EXPECT_THAT(error.what(), HasSubstr("5 bytes; at most 4 expected"));
  }
}

TEST_P(FileSystemContract, RefusesToReadAndWriteWhatIsNoFile) {
  expect_error(ENOENT, "missing", [&] { read("missing"); });
  expect_error(ENOENT, "missing/file", [&] { write("missing/file", "x"); });
  files_.make_directory(path("directory"));
  expect_error(EISDIR, "directory", [&] { read("directory"); });
  expect_error(EISDIR, "directory", [&] { write("directory", "x"); });
  write("file", "x");
  expect_error(ENOTDIR, "file/below", [&] { write("file/below", "x"); });
}

TEST_P(FileSystemContract, MakesADirectoryOnceAndOnlyInOneThatIsThere) {
  files_.make_directory(path("one"));
  EXPECT_TRUE(files_.is_directory(path("one")));
  expect_error(EEXIST, "one", [&] { files_.make_directory(path("one")); });
  write("file", "x");
  expect_error(EEXIST, "file", [&] { files_.make_directory(path("file")); });
  files_.make_directory(path("gone"));
  files_.remove(path("gone"));
  expect_error(ENOENT, "gone/below", [&] { files_.make_directory(path("gone/below")); });
}

TEST_P(FileSystemContract, RenamesAndReplaces) {
  write("new", "new");
  write("old", "old");
  files_.rename(path("new"), path("old"));
  EXPECT_EQ(read("old"), "new");
  EXPECT_THAT(files_.list(path("")), ElementsAre("old"));
  files_.rename(path("old"), path("old"));
  EXPECT_EQ(read("old"), "new");
  expect_error(ENOENT, "new", [&] { files_.rename(path("new"), path("old")); });
}

TEST_P(FileSystemContract, RenamesDirectoriesWithWhatIsInThem) {
  files_.make_directory(path("one"));
  write("one/file", "x");
  files_.rename(path("one"), path("two"));
  EXPECT_FALSE(files_.exists(path("one")));
  EXPECT_EQ(read("two/file"), "x");
  files_.make_directory(path("three"));
  write("three/file", "y");
  expect_error(ENOTEMPTY, "three", [&] { files_.rename(path("two"), path("three")); });
  expect_error(EINVAL, "two", [&] { files_.rename(path("two"), path("two/below")); });
  expect_error(EISDIR, "two", [&] { files_.rename(path("three/file"), path("two")); });
}

TEST_P(FileSystemContract, RemovesFilesAndEmptyDirectories) {
  files_.make_directory(path("one"));
  write("one/file", "x");
  expect_error(ENOTEMPTY, "one", [&] { files_.remove(path("one")); });
  files_.remove(path("one/file"));
  files_.remove(path("one"));
  EXPECT_THAT(files_.list(path("")), IsEmpty());
  expect_error(ENOENT, "one", [&] { files_.remove(path("one")); });
}

TEST_P(FileSystemContract, FlushesDirectoriesOnly) {
  write("file", "x");
  files_.sync_directory(path(""));
  expect_error(ENOENT, "missing", [&] { files_.sync_directory(path("missing")); });
  expect_error(ENOTDIR, "file", [&] { files_.sync_directory(path("file")); });
}

TEST_P(FileSystemContract, CountsTheBlocksOfAFileAndTheBytesFree) {
  write("file", "x");
  EXPECT_GE(files_.allocated_bytes(path("file")), 1u);
  const FileId file = engine_->open(path("tiles"), OpenMode::read_write_create, Caching::buffered);
  engine_->preallocate(file, 1 * MiB);
  EXPECT_EQ(files_.file_bytes(path("tiles")), 1 * MiB);
  EXPECT_GE(files_.allocated_bytes(path("tiles")), 1 * MiB);
  EXPECT_GT(files_.free_bytes(path("")), 0u);
  expect_error(ENOENT, "missing", [&] { files_.file_bytes(path("missing")); });
  expect_error(ENOENT, "missing", [&] { files_.allocated_bytes(path("missing")); });
}

TEST_P(FileSystemContract, SeesTheFilesOfItsEngineAndTheEngineSeesIts) {
  write("file", "a text");
  const FileId file = engine_->open(path("file"), OpenMode::read_only, Caching::buffered);
  const Buffer got(6);
  EXPECT_TRUE(run(*engine_, IoOp::read, file, 0, got.span()).ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(got.data()), 6), "a text");
  files_.rename(path("file"), path("elsewhere"));
  EXPECT_TRUE(run(*engine_, IoOp::read, file, 0, got.span()).ok());
  files_.remove(path("elsewhere"));
  EXPECT_TRUE(run(*engine_, IoOp::read, file, 0, got.span()).ok());
  EXPECT_THROW(engine_->open(path("elsewhere"), OpenMode::read_only, Caching::buffered),
               SystemError);
}

TEST_P(FileSystemContract, LocksAFileForOneAtATime) {
  auto lock = files_.try_lock(path("lock"));
  ASSERT_NE(lock, nullptr);
  EXPECT_TRUE(files_.exists(path("lock")));
  EXPECT_EQ(files_.try_lock(path("lock")), nullptr);
  EXPECT_NE(files_.try_lock(path("another")), nullptr);
  lock.reset();
  EXPECT_NE(files_.try_lock(path("lock")), nullptr);
  expect_error(ENOENT, "missing/lock", [&] { files_.try_lock(path("missing/lock")); });
}

TEST_P(FileSystemContract, LocksFilesNotNames) {
  const auto lock = files_.try_lock(path("lock"));
  files_.rename(path("lock"), path("moved"));
  EXPECT_EQ(files_.try_lock(path("moved")), nullptr);
  EXPECT_NE(files_.try_lock(path("lock")), nullptr);
}

}  // namespace
}  // namespace strata::testing
