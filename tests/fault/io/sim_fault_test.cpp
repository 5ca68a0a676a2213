// What the engine makes of a disk that misbehaves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "contract/io/io_testing.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

using ::testing::HasSubstr;

FileId open_tiles(IoEngine& engine) {
  return engine.open("/sim/tiles", OpenMode::read_write_create, Caching::direct);
}

TEST(SimFault, ShortTransfersStillMoveEveryByte) {
  const auto engine =
      make_sim_engine({.seed = 3, .short_transfer_probability = 0.9, .chunk_bytes = 64 * KiB});
  const FileId file = open_tiles(*engine);
  const auto written = Buffer::random(1 * MiB, 1);
  const Buffer got(1 * MiB);
  EXPECT_TRUE(run(*engine, IoOp::write, file, 0, written.span()).ok());
  EXPECT_TRUE(run(*engine, IoOp::read, file, 0, got.span()).ok());
  EXPECT_TRUE(got == written);
}

TEST(SimFault, AShortTransferOnDemandIsContinued) {
  const auto engine = make_sim_engine({.faults = {{.at_operation = 0}, {.at_operation = 1}}});
  const FileId file = open_tiles(*engine);
  const auto written = Buffer::random(64 * KiB, 1);
  const Buffer got(64 * KiB);
  EXPECT_TRUE(run(*engine, IoOp::write, file, 0, written.span()).ok());
  EXPECT_TRUE(run(*engine, IoOp::read, file, 0, got.span()).ok());
  EXPECT_TRUE(got == written);
}

TEST(SimFault, SurvivesAStormOfRefusals) {
  const auto engine =
      make_sim_engine({.seed = 11, .again_probability = 0.95, .chunk_bytes = 16 * KiB});
  const FileId file = open_tiles(*engine);
  const auto written = Buffer::random(256 * KiB, 1);
  EXPECT_TRUE(run(*engine, IoOp::write, file, 0, written.span()).ok());
}

TEST(SimFault, AnErrorAtAnyOperationSurfacesOnceWithTheFacts) {
  constexpr std::uint64_t count = 6, bytes = 64 * KiB;
  for (std::uint64_t at = 0; at < 2 * count; ++at) {
    // Two pieces per request: 2 * count operations, so every one of them fails once.
    const auto engine =
        make_sim_engine({.seed = at, .faults = {{at, EIO}}, .chunk_bytes = bytes / 2});
    const FileId file = open_tiles(*engine);
    const auto data = Buffer::random(count * bytes, 1);
    std::vector<Outcome> outcomes(count);
    std::vector<IoRequest> requests;
    for (std::uint64_t index = 0; index < count; ++index) {
      requests.push_back(request(IoOp::write, file, index * bytes,
                                 data.span().subspan(index * bytes, bytes), &outcomes[index]));
    }
    engine->submit(requests);
    engine->drain();
    int failed = 0;
    for (std::uint64_t index = 0; index < count; ++index) {
      const IoResult result = outcomes[index].wait();
      EXPECT_EQ(outcomes[index].calls(), 1);
      if (result.ok()) continue;
      ++failed;
      EXPECT_EQ(result.error_number, EIO);
      EXPECT_THAT(result.message,
                  HasSubstr("cannot write 65536 bytes at offset " + std::to_string(index * bytes)));
      EXPECT_THAT(result.message, HasSubstr("/sim/tiles"));
      EXPECT_THAT(result.message, HasSubstr("Input/output error (errno 5)"));
      EXPECT_THAT(result.message, HasSubstr("free"));
    }
    EXPECT_EQ(failed, 1) << "fault at operation " << at;
  }
}

TEST(SimFault, AFullDiskFailsTheWriteAndSaysHowMuchIsFree) {
  const auto engine = make_sim_engine({.capacity_bytes = 64 * KiB, .chunk_bytes = 16 * KiB});
  const FileId file = open_tiles(*engine);
  const auto data = Buffer::random(64 * KiB, 1);
  EXPECT_TRUE(run(*engine, IoOp::write, file, 0, data.span()).ok());
  const IoResult result = run(*engine, IoOp::write, file, 64 * KiB, data.span());
  EXPECT_EQ(result.error_number, ENOSPC);
  EXPECT_THAT(result.message, HasSubstr("No space left on device"));
  EXPECT_THAT(result.message, HasSubstr("0 B free"));
}

TEST(SimFault, AFullDiskRefusesToPreallocate) {
  const auto engine = make_sim_engine({.capacity_bytes = 64 * KiB});
  const FileId file = open_tiles(*engine);
  try {
    engine->preallocate(file, 65 * KiB);
    FAIL() << "reserved more than there is";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.error_number(), ENOSPC);
    EXPECT_THAT(error.what(), HasSubstr("/sim/tiles"));
    EXPECT_THAT(error.what(), HasSubstr("64.0 KiB free"));
  }
}

TEST(SimFault, ASlowDiskIsToldOfWithEveryTransferInFlight) {
  std::mutex mutex;
  std::string told;
  const auto engine = make_sim_engine({.seed = 5,
                                       .latency_us_max = 300'000,
                                       .on_stall =
                                           [&](double, const std::string& in_flight) {
                                             const std::lock_guard lock(mutex);
                                             if (told.empty()) told = in_flight;
                                           },
                                       .stall_seconds = 0.05});
  const FileId file = open_tiles(*engine);
  const auto data = Buffer::random(16 * KiB, 1);
  std::vector<Outcome> outcomes(8);
  std::vector<IoRequest> requests;
  for (std::uint64_t index = 0; index < outcomes.size(); ++index) {
    requests.push_back(request(IoOp::write, file, index * 16 * KiB, data.span(), &outcomes[index]));
  }
  engine->submit(requests);
  engine->drain();
  const std::lock_guard lock(mutex);
  EXPECT_THAT(told, HasSubstr("write to /sim/tiles: 16384 bytes at offset"));
  for (Outcome& outcome : outcomes) EXPECT_TRUE(outcome.wait().ok());
}

// The order in which one batch completes.
std::vector<std::uint64_t> completion_order(std::uint64_t seed) {
  struct Ordered : IoCompletion {
    void complete(const IoResult&) noexcept override { order->push_back(index); }
    std::vector<std::uint64_t>* order = nullptr;
    std::uint64_t index = 0;
  };
  constexpr std::uint64_t count = 16;
  std::vector<std::uint64_t> order;
  std::vector<Ordered> completions(count);
  std::vector<IoRequest> requests;
  const auto engine = make_sim_engine({.seed = seed, .latency_us_max = 20});
  const FileId file = open_tiles(*engine);
  const Buffer data(count * 4096);
  for (std::uint64_t index = 0; index < count; ++index) {
    completions[index].order = &order;
    completions[index].index = index;
    requests.push_back(request(IoOp::write, file, index * 4096,
                               data.span().subspan(index * 4096, 4096), &completions[index]));
  }
  engine->submit(requests);
  engine->drain();
  return order;
}

TEST(SimDisk, RepeatsItsOrderForASeedAndChangesItForAnother) {
  const auto order = completion_order(1);
  EXPECT_EQ(order.size(), 16u);
  EXPECT_EQ(order, completion_order(1));
  EXPECT_NE(order, completion_order(2));
  EXPECT_FALSE(std::ranges::is_sorted(order));
}

TEST(SimDisk, KeepsAFileOverCloseAndOpen) {
  const auto engine = make_sim_engine({});
  FileId file = open_tiles(*engine);
  const auto written = Buffer::random(8 * KiB, 1);
  EXPECT_TRUE(run(*engine, IoOp::write, file, 0, written.span()).ok());
  engine->close(file);
  file = open_tiles(*engine);
  const Buffer got(8 * KiB);
  EXPECT_TRUE(run(*engine, IoOp::read, file, 0, got.span()).ok());
  EXPECT_TRUE(got == written);
}

}  // namespace
}  // namespace strata::testing
