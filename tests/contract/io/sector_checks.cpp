#include "contract/io/sector_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "contract/io/io_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::HasSubstr;

// One file through both of its doors.
struct BothWays {
  BothWays(IoEngine& engine, const std::string& path)
      : direct(engine.open(path, OpenMode::read_write_create, Caching::direct)),
        buffered(engine.open(path, OpenMode::read_write_create, Caching::buffered)),
        sector(engine.info(direct).alignment) {}
  FileId direct, buffered;
  std::uint64_t sector;
};

void write(IoEngine& engine, FileId file, std::uint64_t offset, const Buffer& data) {
  transfer(engine, request(IoOp::write, file, offset, data.span()));
}

Buffer read(IoEngine& engine, FileId file, std::uint64_t offset, std::uint64_t bytes) {
  Buffer data(bytes);
  transfer(engine, request(IoOp::read, file, offset, data.span()));
  return data;
}

void write_odd(IoEngine& engine, const BothWays& file, const Buffer& data) {
  write(engine, file.buffered, 0, data);
  engine.sync(file.buffered);  // or a direct read might not see it
}

bool same(std::span<const std::byte> one, std::span<const std::byte> other) {
  return std::ranges::equal(one, other);
}

}  // namespace

void check_whole_sectors(IoEngine& engine, const std::string& path) {
  const BothWays file(engine, path);
  for (const std::uint64_t sectors : {1, 2, 3, 17, 129}) {
    for (const std::uint64_t at : {0, 1, 15, 127}) {
      const std::uint64_t bytes = sectors * file.sector;
      const auto pattern = Buffer::random(bytes, sectors + at);
      const Buffer written(bytes, file.sector), got(bytes, file.sector);
      std::ranges::copy(pattern.span(), written.data());
      write(engine, file.direct, at * file.sector, written);
      transfer(engine, request(IoOp::read, file.direct, at * file.sector, got.span()));
      EXPECT_TRUE(got == pattern) << sectors << " sectors from " << at;
    }
  }
}

void check_half_sectors(IoEngine& engine, const std::string& path) {
  const BothWays file(engine, path);
  write(engine, file.direct, 0, Buffer::random(4 * file.sector, 1));
  const Buffer data(4 * file.sector);
  const auto error_of = [&](std::uint64_t offset, std::span<std::byte> memory) {
    return run(engine, IoOp::read, file.direct, offset, memory).error_number;
  };
  const std::uint64_t half = file.sector / 2;
  EXPECT_EQ(error_of(half, data.span().first(file.sector)), EINVAL);
  EXPECT_EQ(error_of(0, data.span().first(file.sector + half)), EINVAL);
  EXPECT_EQ(error_of(0, data.span().subspan(half, file.sector)), EINVAL);
}

void check_tails(IoEngine& engine, const std::string& path) {
  const std::uint64_t sector = BothWays(engine, path).sector, whole = 20 * sector;
  for (const std::uint64_t tail : {std::uint64_t{1}, sector / 2 + 1, sector - 1}) {
    const BothWays file(engine, path + std::to_string(tail));
    const auto written = Buffer::random(whole + tail, tail);
    write_odd(engine, file, written);
    EXPECT_EQ(engine.info(file.direct).bytes, whole + tail);
    EXPECT_TRUE(same(read(engine, file.direct, 0, whole).span(), written.span().first(whole)));
    EXPECT_TRUE(
        same(read(engine, file.buffered, whole, tail).span(), written.span().subspan(whole)));
  }
}

void check_reads_across_an_odd_end(IoEngine& engine, const std::string& path) {
  const BothWays file(engine, path);
  write_odd(engine, file, Buffer::random(2 * file.sector + 1, 1));
  for (const std::uint64_t from : {0 * file.sector, 2 * file.sector}) {
    const Buffer data(3 * file.sector - from);
    const IoResult result = run(engine, IoOp::read, file.direct, from, data.span());
    EXPECT_EQ(result.error_number, ENODATA) << result.message;
    EXPECT_THAT(result.message,
                HasSubstr("the file ends at byte " + std::to_string(2 * file.sector + 1)));
  }
}

void check_sector_over_tail(IoEngine& engine, const std::string& path) {
  const BothWays file(engine, path);
  const auto before = Buffer::random(file.sector + 7, 1), over = Buffer::random(file.sector, 2);
  write_odd(engine, file, before);
  write(engine, file.direct, file.sector, over);
  EXPECT_EQ(engine.info(file.direct).bytes, 2 * file.sector);
  const Buffer got = read(engine, file.direct, 0, 2 * file.sector);
  EXPECT_TRUE(same(got.span().first(file.sector), before.span().first(file.sector)));
  EXPECT_TRUE(same(got.span().subspan(file.sector), over.span()));
}

}  // namespace strata::testing
