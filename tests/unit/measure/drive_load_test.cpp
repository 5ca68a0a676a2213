#include "src/measure/drive_load.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>

#include "contract/io/io_testing.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "support/forwarding_engine.hpp"

namespace strata {
namespace {

using testing::Buffer;

constexpr std::uint64_t block = 64 * KiB;
constexpr double short_s = 0.05;
// For loads that end before.
constexpr double long_s = 1000;

// A simulated disk that remembers what was asked of it.
class WatchedDisk : public testing::ForwardingEngine {
 public:
  explicit WatchedDisk(const SimOptions& options) : ForwardingEngine(make_sim_engine(options)) {}

  void submit(std::span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) requests_.push_back(request);
    real().submit(requests);
  }

  // Of the load's thread; looked at when it has ended.
  const std::vector<IoRequest>& requests() const { return requests_; }

 private:
  std::vector<IoRequest> requests_;
};

class DriveLoadTest : public ::testing::Test {
 protected:
  void use(const SimOptions& options) { disk_ = std::make_unique<WatchedDisk>(options); }
  LoadLane lane(std::uint64_t file_bytes, Buffer& memory) {
    const std::string number = std::to_string(num_files_++);
    const auto open = [&](const std::string& name) {
      const FileId file = disk_->open(name + number, OpenMode::read_write_create, Caching::direct);
      disk_->preallocate(file, file_bytes);
      return file;
    };
    const FileId source = open("source"), target = open("target");
    return {source, target, file_bytes, memory.span()};
  }
  LoadSample run(const std::vector<LoadLane>& lanes, const LoadShape& shape) {
    DriveLoad load(*disk_, lanes, shape);
    depth_ = load.depth();
    return load.run(short_s, [this](const LoadState&) { ++num_ticks_; });
  }
  // However long that takes.
  void run_until_asked(const LoadLane& lane, const LoadShape& shape, std::size_t num_requests) {
    const auto may_go_on = [&](const LoadState&) {
      if (disk_->requests().size() >= num_requests) throw Interrupted("enough");
    };
    EXPECT_THROW(DriveLoad(*disk_, {&lane, 1}, shape).run(long_s, may_go_on), Interrupted);
  }

  LoadSample run_once(const std::vector<LoadLane>& lanes,
                      NvmePattern pattern = NvmePattern::write) {
    const LoadShape shape{
        .pattern = pattern, .block_bytes = block, .depth = 2, .at_end = AtFileEnd::stop};
    return DriveLoad(*disk_, lanes, shape).run(long_s, [](const LoadState&) {});
  }

  std::unique_ptr<WatchedDisk> disk_ =
      std::make_unique<WatchedDisk>(SimOptions{.latency_us_max = 200});
  int num_files_ = 0, num_ticks_ = 0, depth_ = 0;
};

TEST_F(DriveLoadTest, CountsEveryByteThatMoved) {
  Buffer memory(16 * block);
  const LoadLane one = lane(8 * block, memory);
  const std::int64_t begin_ns = now_ns();
  const LoadSample sample =
      run({one}, {.pattern = NvmePattern::read, .block_bytes = block, .depth = 4});
  const double elapsed = seconds(now_ns() - begin_ns);
  EXPECT_EQ(sample.lane_bytes, std::vector<std::uint64_t>{disk_->requests().size() * block});
  EXPECT_GE(elapsed, short_s) << "not before its time is over";
  EXPECT_GT(sample.seconds, 0);
  EXPECT_LE(sample.seconds, elapsed);
  EXPECT_GE(num_ticks_, 1);
  EXPECT_DOUBLE_EQ(sample.bytes_per_s() * sample.seconds, sample.bytes());
}

TEST_F(DriveLoadTest, WalksAFileInWholeBlocksOverAndOver) {
  Buffer memory(4 * block);
  run_until_asked(lane(3 * block + 4096, memory),
                  {.pattern = NvmePattern::write, .block_bytes = block, .depth = 2}, 12);
  std::uint64_t number = 0;
  for (const IoRequest& request : disk_->requests()) {
    EXPECT_EQ(request.op, IoOp::write);
    EXPECT_EQ(request.offset, number++ % 3 * block);
    EXPECT_EQ(request.bytes, block);
  }
}

TEST_F(DriveLoadTest, MixesAsManyReadsAsWritesEachInItsFile) {
  Buffer memory(16 * block);
  const LoadLane one = lane(8 * block, memory);
  run({one}, {.pattern = NvmePattern::mixed, .block_bytes = block, .depth = 4});
  std::map<IoOp, int> count;
  for (const IoRequest& request : disk_->requests()) {
    EXPECT_EQ(request.file, request.op == IoOp::read ? one.source : one.target);
    ++count[request.op];
  }
  EXPECT_LE(std::abs(count[IoOp::read] - count[IoOp::write]), 1);
}

TEST_F(DriveLoadTest, KeepsEveryDriveBusy) {
  Buffer first(8 * block), second(8 * block);
  const LoadSample sample = run({lane(8 * block, first), lane(8 * block, second)},
                                {.pattern = NvmePattern::read, .block_bytes = block, .depth = 4});
  ASSERT_EQ(sample.lane_bytes.size(), 2u);
  EXPECT_GT(sample.lane_bytes[0], 0u);
  EXPECT_GT(sample.lane_bytes[1], 0u);
}

TEST_F(DriveLoadTest, GivesEachBlockMemoryOfItsOwnAndLowersTheDepthForIt) {
  Buffer memory(3 * block);
  run({lane(8 * block, memory)}, {.pattern = NvmePattern::read, .block_bytes = block, .depth = 32});
  EXPECT_EQ(depth_, 3);
  std::set<std::byte*> places;
  for (const IoRequest& request : disk_->requests()) places.insert(request.data);
  EXPECT_EQ(places.size(), 3u);
}

TEST_F(DriveLoadTest, TakesTheLatencyOfEachBlockWhenNoneWaits) {
  Buffer memory(16 * block);
  const LoadLane one = lane(8 * block, memory);
  const LoadSample queued = run({one}, {.pattern = NvmePattern::read,
                                        .block_bytes = block,
                                        .depth = 2,
                                        .ahead = BlocksAhead::queued});
  EXPECT_TRUE(queued.latencies_us.empty());
  const std::size_t before = disk_->requests().size();
  const LoadSample alone = run(
      {one},
      {.pattern = NvmePattern::read, .block_bytes = block, .depth = 2, .ahead = BlocksAhead::none});
  EXPECT_EQ(alone.latencies_us.size(), disk_->requests().size() - before);
}

TEST_F(DriveLoadTest, EndsAtTheFilesEndWithEveryBlockOnceWhenAskedTo) {
  Buffer memory(6 * block);
  const LoadLane one = lane(40 * block + 4096, memory);
  DriveLoad load(
      *disk_, {&one, 1},
      {.pattern = NvmePattern::write, .block_bytes = block, .depth = 2, .at_end = AtFileEnd::stop});
  const LoadSample sample = load.run(long_s, [](const LoadState&) {});
  EXPECT_EQ(sample.lane_bytes, std::vector<std::uint64_t>{40 * block});
  ASSERT_EQ(disk_->requests().size(), 40u);
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(disk_->requests()[i].offset, i * block);
  // Nor does it begin anew.
  EXPECT_EQ(load.run(long_s, [](const LoadState&) {}).bytes(), 0);
  EXPECT_EQ(disk_->requests().size(), 40u);
}

TEST_F(DriveLoadTest, WaitsForTheLongestOfTheFilesThatItGoesThroughOnce) {
  Buffer first(4 * block), second(4 * block);
  const LoadSample sample = run_once({lane(3 * block, first), lane(20 * block, second)});
  EXPECT_EQ(sample.lane_bytes, (std::vector<std::uint64_t>{3 * block, 20 * block}));
  EXPECT_EQ(disk_->requests().size(), 23u);
}

TEST_F(DriveLoadTest, GoesOnceThroughBothFilesOfAMixedLoad) {
  Buffer memory(4 * block);
  run_once({lane(10 * block, memory)}, NvmePattern::mixed);
  std::set<std::pair<IoOp, std::uint64_t>> seen;
  for (const IoRequest& request : disk_->requests()) seen.emplace(request.op, request.offset);
  EXPECT_EQ(seen.size(), 20u);
  EXPECT_EQ(disk_->requests().size(), 20u);
}

TEST_F(DriveLoadTest, EndsBeforeTheFilesEndWhenTheTimeIsOver) {
  use({.latency_us_max = 20'000});
  Buffer memory(2 * block);
  const LoadLane one = lane(100'000 * block, memory);
  const LoadSample sample = run(
      {one},
      {.pattern = NvmePattern::write, .block_bytes = block, .depth = 1, .at_end = AtFileEnd::stop});
  EXPECT_GT(sample.bytes(), 0);
  EXPECT_LT(disk_->requests().size(), 100'000u);
}

TEST_F(DriveLoadTest, EndsWithTheMessageOfATransferThatFailed) {
  use({.faults = {{.at_operation = 20, .error_number = EIO}}});
  Buffer memory(16 * block);
  const LoadLane one = lane(8 * block, memory);
  DriveLoad load(*disk_, {&one, 1},
                 {.pattern = NvmePattern::read, .block_bytes = block, .depth = 4});
  try {
    load.run(long_s, [](const LoadState&) {});
    FAIL() << "the failure was not told";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("source0"), std::string::npos) << error.what();
  }
}

TEST_F(DriveLoadTest, EndsWhenTheTickThrowsWithNothingLeftInFlight) {
  Buffer memory(16 * block);
  const LoadLane one = lane(8 * block, memory);
  DriveLoad load(*disk_, {&one, 1},
                 {.pattern = NvmePattern::read, .block_bytes = block, .depth = 4});
  EXPECT_THROW(load.run(1000, [](const LoadState&) { throw Interrupted("enough"); }), Interrupted);
  // Runs again as if nothing had been.
  const LoadSample sample = load.run(short_s, [](const LoadState&) {});
  EXPECT_GT(sample.bytes(), 0);
}

}  // namespace
}  // namespace strata
