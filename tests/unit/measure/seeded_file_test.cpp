#include "src/measure/seeded_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "contract/io/io_testing.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using testing::Buffer;

class SeededFileTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t bytes = 10 * 64 * KiB + 4096;

  SeededFile open() {
    const FileId file = disk_->open("file", OpenMode::read_write_create, Caching::direct);
    return {file, bytes, 7};
  }
  void write(const SeededFile& file) {
    write_seeded(*disk_, file, memory_.span(), [this](std::uint64_t done) { done_ = done; });
  }
  void verify(const SeededFile& file) {
    verify_seeded(*disk_, file, memory_.span(), [this](std::uint64_t done) { done_ = done; });
  }
  void spoil(const SeededFile& file, std::uint64_t offset) {
    Buffer sector(4096);
    const std::uint64_t begin = offset / 4096 * 4096;
    testing::run(*disk_, IoOp::read, file.file, begin, sector.span());
    sector.span()[offset - begin] ^= std::byte{1};
    testing::run(*disk_, IoOp::write, file.file, begin, sector.span());
  }
  std::string complaint(const SeededFile& file) {
    try {
      verify(file);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  std::unique_ptr<SimEngine> disk_ = make_sim_engine({.short_transfer_probability = 0.2});
  Buffer memory_{4 * 64 * KiB};
  std::uint64_t done_ = 0;
};

TEST_F(SeededFileTest, IsReadBackWhole) {
  const SeededFile file = open();
  write(file);
  EXPECT_EQ(done_, bytes);
  EXPECT_EQ(disk_->info(file.file).bytes, bytes);
  done_ = 0;
  verify(file);
  EXPECT_EQ(done_, bytes);
}

TEST_F(SeededFileTest, NamesTheOffsetOfABitThatChanged) {
  const SeededFile file = open();
  write(file);
  spoil(file, 300'008);
  EXPECT_NE(complaint(file).find("offset 300008"), std::string::npos) << complaint(file);
  EXPECT_NE(complaint(file).find("file"), std::string::npos);
}

TEST_F(SeededFileTest, FindsAChangeInTheLastSectorToo) {
  const SeededFile file = open();
  write(file);
  spoil(file, bytes - 8);
  EXPECT_NE(complaint(file).find("offset " + std::to_string(bytes - 8)), std::string::npos);
}

TEST_F(SeededFileTest, WithAnotherSeedIsAnother) {
  SeededFile file = open();
  write(file);
  file.seed = 8;
  EXPECT_NE(complaint(file).find("offset 0 "), std::string::npos) << complaint(file);
}

TEST(SeededBytes, DependOnTheirPlaceNotOnThePieces) {
  std::vector<std::byte> whole(4096), tail(1024);
  fill_seeded(whole, 3, 0);
  fill_seeded(tail, 3, 3072);
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), whole.begin() + 3072));
}

}  // namespace
}  // namespace strata
