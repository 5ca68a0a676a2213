// The engines on drives with sectors of 512 and of 4096 bytes, full ones, and ones that go away.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "contract/io/io_testing.hpp"
#include "contract/io/sector_checks.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "support/loop_drive.hpp"

namespace strata::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t drive_bytes = 32 * MiB;

class LoopDriveTest : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  // Each engine in turn, on a new drive with sectors of GetParam() bytes.
  void on_each_engine(const std::function<void(LoopDrive&, IoEngine&)>& body) const {
    for (const char* name : {"auto", "threads"}) {
      SCOPED_TRACE(name);
      const TempDirectory directory;
      LoopDrive drive(directory.path(), drive_bytes, 2 * drive_bytes, GetParam());
      if (!drive.why_not().empty()) GTEST_SKIP() << drive.why_not();
      body(drive, *make_io_engine(name, {}));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Sectors, LoopDriveTest, ::testing::Values(512, 4096),
                         [](const auto& one) { return std::to_string(one.param); });

TEST_P(LoopDriveTest, MovesSectorsAndTailsExactly) {
  on_each_engine([](LoopDrive& drive, IoEngine& engine) {
    const std::string path = drive.file(std::string(engine.name()));
    const FileInfo info =
        engine.info(engine.open(path, OpenMode::read_write_create, Caching::direct));
    EXPECT_TRUE(info.direct) << info.note;
    EXPECT_EQ(info.alignment, GetParam());
    check_whole_sectors(engine, path + "-whole");
    check_half_sectors(engine, path + "-half");
    check_tails(engine, path + "-tail");
    check_reads_across_an_odd_end(engine, path + "-odd");
    check_sector_over_tail(engine, path + "-over");
  });
}

TEST_P(LoopDriveTest, AFullOneFailsWithTheBytesFreeAndKeepsWhatItHas) {
  on_each_engine([](LoopDrive& drive, IoEngine& engine) {
    const std::string path = drive.file(std::string(engine.name()));
    const auto open = [&](const std::string& name) {
      return engine.open(path + name, OpenMode::read_write_create, Caching::direct);
    };
    const FileId small = open("-small"), large = open("-large");
    const auto kept = Buffer::random(1 * MiB, 1);
    const Buffer data(drive_bytes);
    transfer(engine, request(IoOp::write, small, 0, kept.span()));
    try {
      engine.preallocate(large, 2 * drive_bytes);
      ADD_FAILURE() << "reserved more than there is";
    } catch (const SystemError& error) {
      EXPECT_EQ(error.error_number(), ENOSPC);
      EXPECT_THAT(error.what(), HasSubstr("free on its file system"));
    }
    const IoResult result = run(engine, IoOp::write, large, 0, data.span());
    EXPECT_EQ(result.error_number, ENOSPC);
    EXPECT_THAT(result.message, HasSubstr(path + "-large: "));
    EXPECT_THAT(result.message, HasSubstr("free on its file system"));
    const Buffer got(1 * MiB);
    transfer(engine, request(IoOp::read, small, 0, got.span()));
    EXPECT_TRUE(got == kept);
    for (const char* name : {"-small", "-large"}) engine.file_system().remove(path + name);
    for (const FileId file : {small, large}) engine.close(file);
  });
}

TEST_P(LoopDriveTest, OneThatGoesAwayFailsWhatIsUnderWayAndWhatComesLater) {
  on_each_engine([](LoopDrive& drive, IoEngine& engine) {
    const FileId file =
        engine.open(drive.file("tiles"), OpenMode::read_write_create, Caching::direct);
    const Buffer data(8 * MiB);
    transfer(engine, request(IoOp::write, file, 0, data.span()));
    drive.shrink(64 * KiB);
    for (const IoOp op : {IoOp::read, IoOp::write}) {
      const IoResult result = run(engine, op, file, 0, data.span());
      EXPECT_EQ(result.error_number, EIO) << result.message;
      EXPECT_THAT(result.message, HasSubstr(drive.file("tiles")));
    }
    engine.close(file);
  });
}

// Neither has fallocate(), and both have O_DIRECT.
TEST(LoopDrives, OfExt2AndExt3ReserveBlocksForDirectTransfers) {
  for (const char* file_system : {"ext2", "ext3"}) {
    SCOPED_TRACE(file_system);
    const TempDirectory directory;
    const LoopDrive drive(directory.path(), drive_bytes, 2 * drive_bytes, 512, file_system);
    if (!drive.why_not().empty()) GTEST_SKIP() << drive.why_not();
    const auto engine = make_io_engine("auto", {});
    const FileId file =
        engine->open(drive.file("tiles"), OpenMode::read_write_create, Caching::direct);
    const auto data = Buffer::random(1 * MiB, 1), zeros = Buffer(1 * MiB);
    transfer(*engine, request(IoOp::write, file, 2 * MiB, data.span()));
    engine->preallocate(file, 8 * MiB);
    EXPECT_TRUE(engine->info(file).direct);
    EXPECT_EQ(engine->info(file).bytes, 8 * MiB);
    EXPECT_GE(engine->info(file).allocated_bytes, 8 * MiB);
    const Buffer got(1 * MiB);
    transfer(*engine, request(IoOp::read, file, 2 * MiB, got.span()));
    EXPECT_TRUE(got == data) << "what was there stays";
    for (const IoOp op : {IoOp::write, IoOp::read})
      transfer(*engine, request(op, file, 5 * MiB, (op == IoOp::write ? data : got).span()));
    EXPECT_TRUE(got == data);
    EXPECT_FALSE(run(*engine, IoOp::write, file, 1, data.span()).ok()) << "O_DIRECT still holds";
    EXPECT_THROW(engine->preallocate(file, 2 * drive_bytes), SystemError);
    engine->close(file);
  }
}

TEST(LoopDrives, OnTwoDrivesHaveAQueueEach) {
  const TempDirectory directory;
  const LoopDrive drive(directory.path(), drive_bytes, 2 * drive_bytes);
  if (!drive.why_not().empty()) GTEST_SKIP() << drive.why_not();
  const auto engine = make_io_engine("auto", {});
  const auto data = Buffer::random(256 * KiB, 1);
  std::vector<FileId> files;
  std::vector<Outcome> outcomes(2);
  std::vector<IoRequest> requests;
  for (const std::string& path : {drive.file("tiles"), directory.file("tiles")}) {
    files.push_back(engine->open(path, OpenMode::read_write_create, Caching::direct));
    requests.push_back(
        request(IoOp::write, files.back(), 0, data.span(), &outcomes[requests.size()]));
  }
  EXPECT_THAT(engine->describe(), HasSubstr("2 devices, a queue for each"));
  engine->submit(requests);
  engine->drain();
  for (const FileId file : files) {
    const Buffer got(256 * KiB);
    EXPECT_TRUE(run(*engine, IoOp::read, file, 0, got.span()).ok());
    EXPECT_TRUE(got == data);
  }
}

}  // namespace
}  // namespace strata::testing
