#include "src/measure/new_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(NewFile, HasItsSpaceReservedAndGoesAway) {
  const auto disk = make_sim_engine({});
  {
    const NewFile file(*disk, "scratch/new", 1 * MiB);
    EXPECT_GE(disk->info(file.id()).allocated_bytes, 1 * MiB);
    EXPECT_TRUE(disk->file_system().exists("scratch/new"));
  }
  EXPECT_THAT(disk->file_system().list("scratch"), IsEmpty());
}

TEST(NewFile, RefusesAFileThatWasThereAndLeavesIt) {
  const auto disk = make_sim_engine({});
  disk->close(disk->open("scratch/new", OpenMode::read_write_create, Caching::direct));
  try {
    const NewFile file(*disk, "scratch/new", 1 * MiB);
    FAIL() << "taken for new";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("scratch/new is there already"));
  }
  EXPECT_TRUE(disk->file_system().exists("scratch/new"));
}

TEST(NewFile, LeavesNothingWhereItsSpaceCannotBeReserved) {
  const auto disk = make_sim_engine({.capacity_bytes = 1 * MiB});
  EXPECT_THROW(NewFile(*disk, "scratch/new", 2 * MiB), SystemError);
  EXPECT_THAT(disk->file_system().list("scratch"), IsEmpty());
}

}  // namespace
}  // namespace strata
