#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/io/io_testing.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

TEST(MakeIoEngine, ChoosesByName) {
  EXPECT_EQ(make_io_engine("threads", {})->name(), "threads");
  const auto best = make_io_engine("auto", {});
  if (best->name() == "threads") {
    // Its reason is the kernel's refusal of the other one.
    EXPECT_THAT(best->describe(), ::testing::HasSubstr("io_uring"));
  } else {
    EXPECT_EQ(best->name(), "uring");
  }
}

TEST(MakeIoEngine, RefusesAnUnknownNameAndSaysTheKnownOnes) {
  try {
    make_io_engine("libaio", {});
    FAIL() << "made an engine";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("libaio"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("auto, uring or threads"));
  }
}

TEST(MakeIoEngine, RefusesLimitsOutOfRangeByName) {
  EXPECT_THROW(make_io_engine("threads", {.num_threads = 0}), ConfigError);
  EXPECT_THROW(make_io_engine("threads", {.queue_depth = -1}), ConfigError);
  EXPECT_THROW(make_io_engine("uring", {.chunk_bytes = 100}), ConfigError);
  EXPECT_THROW(make_io_engine("threads", {.stall_seconds = 0}), ConfigError);
}

TEST(FileInfo, CallsMemoryFilesBufferedWithTheReason) {
  const auto engine = make_threads_engine({});
  const std::string path = "/dev/shm/strata-io-test-" + std::to_string(::getpid());
  FileId file;
  try {
    file = engine->open(path, OpenMode::read_write_create, Caching::direct);
  } catch (const SystemError& error) {
    GTEST_SKIP() << error.what();
  }
  const FileInfo info = engine->info(file);
  std::filesystem::remove(path);
  if (info.direct) GTEST_SKIP() << "/dev/shm is not in memory here";
  EXPECT_EQ(info.alignment, 1u);
  EXPECT_THAT(info.note, ::testing::HasSubstr("buffered"));
}

}  // namespace
}  // namespace strata::testing
