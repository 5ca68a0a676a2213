// One queue per device. The devices are played: a function says which one a file is on.

#include "io/common/posix_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "contract/io/io_testing.hpp"
#include "io/threads/threads_queue.hpp"
#include "io/uring/uring_queue.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const IoOptions options = {.queue_depth = 4, .chunk_bytes = 64 * KiB, .num_threads = 2};

// The last letter of the path.
std::uint64_t played_device(const PosixFile& file) {
  return static_cast<std::uint64_t>(file.path().back());
}

class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// A device that holds every transfer until its gate opens.
class GatedQueue : public DeviceQueue {
 public:
  GatedQueue(Gate& gate, int number)
      : DeviceQueue(64 * KiB, number), thread_([this, &gate] { work(gate); }) {}
  ~GatedQueue() override {
    board().drain();
    board().stop();
  }
  void wake() override {}
  void forget(PosixFile&) override {}
  void register_memory(std::span<std::byte>) override {}
  void unregister_memory(std::span<std::byte>) override {}
  std::string describe() const override { return "gated"; }

 private:
  void work(Gate& gate) {
    while (auto piece = board().wait_and_take()) {
      gate.pass();
      advance(*piece, static_cast<std::int64_t>(piece->left()));
      board().finish(*piece);
    }
  }
  std::jthread thread_;
};

// The first device is gated, the others are served by threads.
QueueFactory first_gated(Gate& gate) {
  return [&gate](int number) -> std::unique_ptr<DeviceQueue> {
    if (number == 0) return std::make_unique<GatedQueue>(gate, number);
    return std::make_unique<ThreadsQueue>(options, "played", number);
  };
}

FileId open(IoEngine& engine, const TempDirectory& directory, const std::string& name) {
  return engine.open(directory.file(name), OpenMode::read_write_create, Caching::buffered);
}

TEST(PosixEngine, ServesADeviceWhileAnotherHoldsEveryTransfer) {
  const TempDirectory directory;
  Gate gate;
  PosixEngine engine("played", options, first_gated(gate), played_device);
  const FileId slow = open(engine, directory, "file-a"), fast = open(engine, directory, "file-b");
  const auto data = Buffer::random(1 * MiB, 1);
  const Buffer got(1 * MiB);
  std::vector<Outcome> held(8);
  for (Outcome& outcome : held) {
    const IoRequest one = request(IoOp::write, slow, 0, data.span(), &outcome);
    engine.submit({&one, 1});
  }
  EXPECT_TRUE(run(engine, IoOp::write, fast, 0, data.span()).ok());
  EXPECT_TRUE(run(engine, IoOp::read, fast, 0, got.span()).ok());
  EXPECT_TRUE(got == data);
  for (const Outcome& outcome : held) EXPECT_EQ(outcome.calls(), 0);
  gate.open();
  engine.drain();
  for (const Outcome& outcome : held) EXPECT_EQ(outcome.calls(), 1);
}

TEST(PosixEngine, SendsEachRequestOfAMixedBatchToItsDevice) {
  const TempDirectory directory;
  Gate gate;
  PosixEngine engine("played", options, first_gated(gate), played_device);
  const FileId slow = open(engine, directory, "file-a"), fast = open(engine, directory, "file-b");
  const auto data = Buffer::random(4 * KiB, 1);
  std::vector<Outcome> held(100), done(100);
  std::vector<IoRequest> requests;
  for (std::size_t index = 0; index < held.size(); ++index) {
    requests.push_back(request(IoOp::write, slow, 0, data.span(), &held[index]));
    requests.push_back(request(IoOp::write, fast, 0, data.span(), &done[index]));
  }
  engine.submit(requests);
  for (Outcome& outcome : done) EXPECT_TRUE(outcome.wait().ok());
  for (Outcome& outcome : held) EXPECT_EQ(outcome.calls(), 0);
  EXPECT_EQ(engine.cancel(held.back()), 1u);
  EXPECT_EQ(engine.cancel(done.back()), 0u);
  gate.open();
  engine.drain();
  for (Outcome& outcome : held) EXPECT_EQ(outcome.calls(), 1);
}

TEST(PosixEngine, TellsOfATransferThatItsDeviceKeeps) {
  const TempDirectory directory;
  Gate gate;
  std::mutex mutex;
  std::string told;
  IoOptions watched = options;
  watched.stall_seconds = 0.02;
  watched.on_stall = [&](double seconds, const std::string& in_flight) {
    const std::lock_guard lock(mutex);
    EXPECT_GE(seconds, 0.02);
    told = in_flight;
    gate.open();  // or the transfer would never end
  };
  PosixEngine engine("played", watched, first_gated(gate), played_device);
  const FileId file = open(engine, directory, "file-a");
  const auto data = Buffer::random(4 * KiB, 1);
  EXPECT_TRUE(run(engine, IoOp::write, file, 8 * KiB, data.span()).ok());
  const std::lock_guard lock(mutex);
  EXPECT_THAT(told, HasSubstr("write to " + directory.file("file-a")));
  EXPECT_THAT(told, HasSubstr("4096 bytes at offset 8192"));
}

TEST(PosixEngine, WatchesWhileItsDestructorWaits) {
  const TempDirectory directory;
  Gate gate;
  Outcome outcome;
  const auto data = Buffer::random(4 * KiB, 1);
  IoOptions watched = options;
  watched.stall_seconds = 0.02;
  watched.on_stall = [&](double, const std::string&) { gate.open(); };
  {
    PosixEngine engine("played", watched, first_gated(gate), played_device);
    const IoRequest one =
        request(IoOp::write, open(engine, directory, "file-a"), 0, data.span(), &outcome);
    engine.submit({&one, 1});
  }
  EXPECT_EQ(outcome.calls(), 1);
}

TEST(PosixEngine, MakesAQueueWhenTheFirstFileOfADeviceIsOpened) {
  const TempDirectory directory;
  std::vector<int> made;
  const QueueFactory factory = [&](int number) {
    made.push_back(number);
    return std::make_unique<ThreadsQueue>(options, "played", number);
  };
  PosixEngine engine("played", options, factory, played_device);
  EXPECT_EQ(made, (std::vector{0}));
  open(engine, directory, "one-a");
  open(engine, directory, "two-a");
  EXPECT_EQ(made, (std::vector{0}));
  EXPECT_THAT(engine.describe(), Not(HasSubstr("devices")));
  open(engine, directory, "one-b");
  open(engine, directory, "two-a");
  open(engine, directory, "one-c");
  EXPECT_EQ(made, (std::vector{0, 1, 2}));
  EXPECT_THAT(engine.describe(), HasSubstr("3 devices, a queue for each"));
}

TEST(PosixEngine, SharesTheLastQueueWhenThereAreMoreDevicesThanQueues) {
  const TempDirectory directory;
  std::uint64_t device = 0;
  IoOptions small = options;
  small.num_threads = 1;
  const QueueFactory factory = [&](int number) {
    return std::make_unique<ThreadsQueue>(small, "played", number);
  };
  PosixEngine engine("played", small, factory, [&](const PosixFile&) { return ++device; });
  const auto data = Buffer::random(4 * KiB, 1);
  for (int index = 0; index < FileTable::queues_max + 3; ++index) {
    const FileId file = open(engine, directory, "file" + std::to_string(index));
    EXPECT_EQ(FileTable::queue_of(file), std::min(index, FileTable::queues_max - 1));
    EXPECT_TRUE(run(engine, IoOp::write, file, 0, data.span()).ok());
  }
}

TEST(PosixEngine, RegistersMemoryWithTheRingsOfAllDevicesAlsoThoseMadeLater) {
  const TempDirectory directory;
  const QueueFactory factory = [](int number) {
    return std::make_unique<UringQueue>(options, number);
  };
  std::unique_ptr<PosixEngine> engine;
  try {
    engine = std::make_unique<PosixEngine>("uring", options, factory, played_device);
  } catch (const SystemError& error) {
    GTEST_SKIP() << error.what();
  }
  const auto data = Buffer::random(1 * MiB, 1);
  const Buffer got(1 * MiB), replaced(64 * KiB);
  engine->register_memory(data.span());
  engine->register_memory(replaced.span());
  const FileId one = open(*engine, directory, "file-a"), two = open(*engine, directory, "file-b");
  engine->register_memory(got.span());
  engine->unregister_memory(replaced.span());
  const std::string text = engine->describe();
  if (text.find("not registered") != std::string::npos) GTEST_SKIP() << text;
  const std::size_t first = text.find("2 registered buffers (2.00 MiB)");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find("2 registered buffers (2.00 MiB)", first + 1), std::string::npos) << text;
  for (const FileId file : {one, two}) {
    EXPECT_TRUE(run(*engine, IoOp::write, file, 0, data.span()).ok());
    EXPECT_TRUE(run(*engine, IoOp::read, file, 0, got.span()).ok());
    EXPECT_TRUE(got == data);
    engine->close(file);
  }
}

}  // namespace
}  // namespace strata::testing
