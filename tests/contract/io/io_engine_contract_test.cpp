// One suite for every IoEngine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "contract/io/engine_cases.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

using ::testing::HasSubstr;

class IoEngineContract : public EngineTest {};

INSTANTIATE_TEST_SUITE_P(Engines, IoEngineContract, ::testing::ValuesIn(engine_cases()),
                         [](const auto& engine) { return engine.param.name; });

TEST_P(IoEngineContract, GivesBackWhatWasWrittenAtManySizesAndOffsets) {
  const FileId file = open("tiles");
  engine_->preallocate(file, 2 * MiB);
  // Around one piece (64 KiB) and many; every offset a multiple of 4096.
  for (const std::uint64_t pages : {1, 2, 15, 16, 17, 31, 32, 33, 100}) {
    for (const std::uint64_t offset : {0 * KiB, 4 * KiB, 64 * KiB, 1020 * KiB}) {
      const auto written = Buffer::random(pages * 4 * KiB, pages + offset);
      write(file, offset, written);
      EXPECT_TRUE(read(file, offset, written.bytes()) == written) << pages << " at " << offset;
    }
  }
}

TEST_P(IoEngineContract, LeavesTheBytesAroundAWriteAlone) {
  const FileId file = open("tiles");
  const auto before = Buffer::random(512 * KiB, 1);
  write(file, 0, before);
  const auto middle = Buffer::random(132 * KiB, 2);
  write(file, 60 * KiB, middle);
  auto expected = Buffer::random(512 * KiB, 1);
  std::ranges::copy(middle.span(), expected.data() + 60 * KiB);
  EXPECT_TRUE(read(file, 0, 512 * KiB) == expected);
}

TEST_P(IoEngineContract, MovesOddTailsOfBufferedFiles) {
  const FileId file = open("text", Caching::buffered);
  EXPECT_EQ(engine_->info(file).alignment, 1u);
  for (const std::uint64_t bytes : {1u, 511u, 4097u, 65537u, 200001u}) {
    const auto written = Buffer::random(bytes, bytes);
    write(file, 3, written);
    EXPECT_TRUE(read(file, 3, bytes) == written) << bytes;
  }
}

TEST_P(IoEngineContract, CompletesManyRequestsOfAllPrioritiesOnceEach) {
  constexpr std::uint64_t count = 60, bytes = 96 * KiB;
  const FileId file = open("tiles");
  engine_->preallocate(file, count * bytes);
  std::vector<Buffer> data;
  std::vector<Outcome> outcomes(count);
  std::vector<IoRequest> requests;
  for (std::uint64_t index = 0; index < count; ++index) {
    data.push_back(Buffer::random(bytes, index));
    requests.push_back(request(IoOp::write, file, index * bytes, data.back().span(),
                               &outcomes[index],
                               static_cast<IoPriority>(index % num_io_priorities)));
  }
  engine_->submit(requests);
  engine_->drain();
  for (Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.calls(), 1);
    EXPECT_TRUE(outcome.wait().ok()) << outcome.wait().message;
  }
  for (std::uint64_t index = 0; index < count; ++index) {
    EXPECT_TRUE(read(file, index * bytes, bytes) == data[index]) << index;
  }
}

TEST_P(IoEngineContract, ServesManySubmittersAtOnce) {
  constexpr std::uint64_t threads = 4, rounds = 12, bytes = 72 * KiB;
  const FileId file = open("tiles");
  engine_->preallocate(file, threads * bytes);
  std::vector<int> wrong(threads, 0);
  std::vector<std::thread> submitters;
  for (std::uint64_t thread = 0; thread < threads; ++thread) {
    submitters.emplace_back([&, thread] {
      for (std::uint64_t round = 0; round < rounds; ++round) {
        const auto written = Buffer::random(bytes, thread * 100 + round);
        const Buffer got(bytes);
        transfer(*engine_, request(IoOp::write, file, thread * bytes, written.span()));
        transfer(*engine_, request(IoOp::read, file, thread * bytes, got.span()));
        wrong[thread] += got == written ? 0 : 1;
      }
    });
  }
  for (std::thread& submitter : submitters) submitter.join();
  EXPECT_EQ(wrong, std::vector<int>(threads, 0));
}

TEST_P(IoEngineContract, TakesAnEmptyBatchAndAnEmptyRequest) {
  const FileId file = open("tiles");
  engine_->submit({});
  engine_->drain();
  const IoResult result = run(*engine_, IoOp::read, file, 0, {});
  EXPECT_TRUE(result.ok()) << result.message;
  EXPECT_EQ(result.bytes, 0u);
}

TEST_P(IoEngineContract, DrainsWhatWasSubmittedBefore) {
  const FileId file = open("tiles");
  const auto data = Buffer::random(1 * MiB, 5);
  Outcome outcome;
  const IoRequest one =
      request(IoOp::write, file, 0, data.span(), &outcome, IoPriority::write_back);
  engine_->submit({&one, 1});
  engine_->drain();
  EXPECT_EQ(outcome.calls(), 1);
}

TEST_P(IoEngineContract, RefusesToOpenAMissingFile) {
  const std::string path = directory_.file("missing");
  try {
    engine_->open(path, OpenMode::read_only, Caching::direct);
    FAIL() << "opened " << path;
  } catch (const SystemError& error) {
    EXPECT_EQ(error.error_number(), ENOENT);
    EXPECT_THAT(error.what(), HasSubstr(path));
  }
}

TEST_P(IoEngineContract, ReportsMisalignedRequestsToDirectFiles) {
  const FileId file = open("tiles");
  const FileInfo info = engine_->info(file);
  if (!info.direct) GTEST_SKIP() << info.note;
  write(file, 0, Buffer::random(16 * KiB, 1));
  const Buffer shifted(4096, 1), aligned(8192);
  const auto error_of = [&](std::uint64_t offset, std::span<std::byte> memory) {
    const IoResult result = run(*engine_, IoOp::read, file, offset, memory);
    EXPECT_THAT(result.message, HasSubstr(info.path));
    return result.error_number;
  };
  EXPECT_EQ(error_of(0, shifted.span()), EINVAL);
  EXPECT_EQ(error_of(1, aligned.span().first(4096)), EINVAL);
  EXPECT_EQ(error_of(0, aligned.span().first(4097)), EINVAL);
}

TEST_P(IoEngineContract, ReportsAReadPastTheEndWithTheFilesLength) {
  const FileId file = open("tiles");
  write(file, 0, Buffer::random(8 * KiB, 1));
  for (const std::uint64_t offset : {4 * KiB, 8 * KiB, 1 * MiB}) {
    const Buffer data(8 * KiB);
    const IoResult result = run(*engine_, IoOp::read, file, offset, data.span());
    EXPECT_EQ(result.error_number, ENODATA);
    EXPECT_THAT(result.message,
                HasSubstr("cannot read 8192 bytes at offset " + std::to_string(offset)));
    EXPECT_THAT(result.message, HasSubstr("the file ends at byte 8192"));
  }
}

TEST_P(IoEngineContract, ReportsRequestsOnFilesThatAreNotOpen) {
  const FileId file = open("tiles");
  engine_->close(file);
  const Buffer data(4096);
  for (const FileId gone : {file, FileId{}, FileId{12345}}) {
    const IoResult result = run(*engine_, IoOp::read, gone, 0, data.span());
    EXPECT_EQ(result.error_number, EBADF);
    EXPECT_THAT(result.message, HasSubstr("not open"));
  }
  EXPECT_THROW(engine_->info(file), SystemError);
  EXPECT_THROW(engine_->close(file), SystemError);
}

TEST_P(IoEngineContract, ReportsWritesToReadOnlyFilesAndLeavesThemAlone) {
  const auto original = Buffer::random(8 * KiB, 1);
  write(open("tiles"), 0, original);
  const FileId file = engine_->open(directory_.file("tiles"), OpenMode::read_only, Caching::direct);
  const auto other = Buffer::random(8 * KiB, 2);
  const IoResult result = run(*engine_, IoOp::write, file, 0, other.span());
  EXPECT_EQ(result.error_number, EBADF);
  EXPECT_THAT(result.message, HasSubstr("read-only"));
  EXPECT_TRUE(read(file, 0, 8 * KiB) == original);
}

TEST_P(IoEngineContract, ReportsRequestsWithoutMemoryAndBeyondAnyFile) {
  const FileId file = open("tiles");
  const Buffer data(4096);
  Outcome outcome;
  const IoRequest one = {IoOp::read, file, 0, nullptr, 4096, IoPriority::now, &outcome};
  engine_->submit({&one, 1});
  EXPECT_EQ(outcome.wait().error_number, EFAULT);
  EXPECT_EQ(run(*engine_, IoOp::read, file, ~0ull - 4095, data.span()).error_number, EOVERFLOW);
}

TEST_P(IoEngineContract, ClosesOnlyAfterWhatWasSubmitted) {
  const FileId file = open("tiles");
  const auto data = Buffer::random(1 * MiB, 9);
  Outcome outcome;
  const IoRequest one = request(IoOp::write, file, 0, data.span(), &outcome);
  engine_->submit({&one, 1});
  engine_->close(file);
  EXPECT_EQ(outcome.calls(), 1);
  EXPECT_TRUE(outcome.wait().ok()) << outcome.wait().message;
  EXPECT_TRUE(read(open("tiles"), 0, 1 * MiB) == data);
}

TEST_P(IoEngineContract, PreallocatesToTheExactSizeAndReadsItAsZeros) {
  const FileId file = open("tiles");
  engine_->preallocate(file, 0);
  EXPECT_EQ(engine_->info(file).bytes, 0u);
  engine_->preallocate(file, 300 * KiB);
  EXPECT_EQ(engine_->info(file).bytes, 300 * KiB);
  EXPECT_TRUE(read(file, 0, 300 * KiB) == Buffer(300 * KiB));
}

TEST_P(IoEngineContract, SyncsAFile) {
  const FileId file = open("tiles");
  const auto data = Buffer::random(128 * KiB, 3);
  write(file, 0, data);
  engine_->sync(file);
  EXPECT_TRUE(read(file, 0, 128 * KiB) == data);
}

TEST_P(IoEngineContract, MovesRegisteredMemoryAlike) {
  const FileId file = open("tiles");
  const auto written = Buffer::random(1 * MiB, 4);
  const Buffer got(1 * MiB);
  engine_->register_memory(written.span());
  engine_->register_memory(got.span());
  engine_->register_memory(got.span());
  write(file, 0, written);
  transfer(*engine_, request(IoOp::read, file, 0, got.span()));
  EXPECT_TRUE(got == written);
  // A transfer that is only half in registered memory.
  engine_->unregister_memory(got.span());
  engine_->register_memory(got.span().first(512 * KiB));
  std::ranges::fill(got.span(), std::byte{0});
  transfer(*engine_, request(IoOp::read, file, 0, got.span()));
  EXPECT_TRUE(got == written);
  engine_->unregister_memory(got.span());
  engine_->unregister_memory(written.span());
}

TEST_P(IoEngineContract, OpensMoreFilesThanAnyTableHolds) {
  std::vector<FileId> files;
  for (std::uint64_t index = 0; index < 80; ++index) {
    files.push_back(open("tiles" + std::to_string(index)));
    write(files.back(), 0, Buffer::random(4096, index));
  }
  for (std::uint64_t index = 0; index < 80; ++index) {
    EXPECT_TRUE(read(files[index], 0, 4096) == Buffer::random(4096, index)) << index;
    engine_->close(files[index]);
  }
}

TEST_P(IoEngineContract, DescribesItselfInOneLine) {
  const std::string text = engine_->describe();
  EXPECT_THAT(text,
              HasSubstr(engine_->name() == "uring" ? "io_uring" : std::string(engine_->name())));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST_P(IoEngineContract, ThrowsTheFactsFromAnAwaitedTransfer) {
  const FileId file = open("tiles");
  const Buffer data(4096);
  try {
    transfer(*engine_, request(IoOp::read, file, 4096, data.span()));
    FAIL() << "read past the end";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(directory_.file("tiles")));
  }
}

}  // namespace
}  // namespace strata::testing
