// A step may allocate nothing, so neither may a request.

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>

#include "contract/io/io_testing.hpp"
#include "io/common/posix_engine.hpp"
#include "io/threads/threads_queue.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/io/store/shard_store.hpp"

namespace {
std::atomic<std::uint64_t> num_allocations{0};
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++num_allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++num_allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace strata::testing {
namespace {

class Counter : public IoCompletion {
 public:
  void complete(const IoResult& result) noexcept override { failures += result.ok() ? 0 : 1; }
  std::atomic<int> failures{0};
};

class Arrivals : public IoCompletion {
 public:
  void complete(const IoResult& result) noexcept override {
    const std::lock_guard lock(mutex_);
    failures_ += result.ok() ? 0 : 1;
    ++count_;
    changed_.notify_one();
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count; });
  }
  int failures() const { return failures_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0, failures_ = 0;
};

// Allocations of 20 rounds of 40 requests after two rounds to warm up. The requests go to the files
// in turn.
std::uint64_t allocations_of(IoEngine& engine, const std::vector<std::string>& paths) {
  std::vector<FileId> files;
  for (const std::string& path : paths) {
    files.push_back(engine.open(path, OpenMode::read_write_create, Caching::direct));
    engine.preallocate(files.back(), 40 * 16 * KiB);
  }
  const Buffer memory(40 * 16 * KiB);
  Counter counter;
  std::vector<IoRequest> requests;
  for (std::uint64_t at = 0; at < memory.bytes(); at += 16 * KiB) {
    const auto priority = static_cast<IoPriority>(requests.size() % num_io_priorities);
    requests.push_back(request(IoOp::write, files[requests.size() % files.size()], at,
                               memory.span().subspan(at, 16 * KiB), &counter, priority));
  }
  std::uint64_t warm = 0;
  for (int round = 0; round < 22; ++round) {
    if (round == 2) warm = num_allocations;
    engine.submit(requests);
    engine.drain();
  }
  const std::uint64_t after = num_allocations;
  EXPECT_EQ(counter.failures, 0);
  return after - warm;
}

const IoOptions counted_options = {.queue_depth = 8, .chunk_bytes = 8 * KiB, .num_threads = 2};

TEST(Allocation, TheCountSeesAllocations) {
  const std::uint64_t before = num_allocations;
  const auto memory = std::make_unique<std::vector<int>>(100);
  EXPECT_GE(num_allocations - before, 2u);
}

TEST(Allocation, IsNotNeededByTheThreadsEngineInTheSteadyState) {
  const TempDirectory directory;
  EXPECT_EQ(allocations_of(*make_threads_engine(counted_options), {directory.file("tiles")}), 0u);
}

TEST(Allocation, IsNotNeededByTheUringEngineInTheSteadyState) {
  const TempDirectory directory;
  std::unique_ptr<IoEngine> engine;
  try {
    engine = make_uring_engine(counted_options);
  } catch (const SystemError& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_EQ(allocations_of(*engine, {directory.file("tiles")}), 0u);
}

TEST(Allocation, IsNotNeededForABatchThatGoesToSeveralDevices) {
  const TempDirectory directory;
  PosixEngine engine(
      "played", counted_options,
      [](int number) { return std::make_unique<ThreadsQueue>(counted_options, "played", number); },
      [](const PosixFile& file) { return static_cast<std::uint64_t>(file.path().back()); });
  const std::vector<std::string> paths = {directory.file("a"), directory.file("b"),
                                          directory.file("c")};
  EXPECT_EQ(allocations_of(engine, paths), 0u);
  EXPECT_EQ(allocations_of(engine, paths), 0u);
  EXPECT_NE(engine.describe().find("3 devices"), std::string::npos);
}

TEST(Allocation, IsNotNeededToGiveUpARequestThatCompletes) {
  const TempDirectory directory;
  const auto engine = make_threads_engine(counted_options);
  Counter counter;
  allocations_of(*engine, {directory.file("tiles")});
  const std::uint64_t before = num_allocations;
  EXPECT_EQ(engine->cancel(counter), 0u);
  EXPECT_EQ(num_allocations - before, 0u);
}

// Allocations of 20 rounds that write and read every tile, after two rounds to warm up.
std::uint64_t allocations_of_store(IoEngine& engine, const std::string& directory,
                                   const StoreOptions& store_options) {
  StoreSpec spec;
  spec.directories = {directory};
  for (int i = 0; i < 20; ++i) spec.tiles.push_back({"master/" + std::to_string(i), 16 * KiB, 0});
  const auto store = ShardStore::create(engine, spec, store_options);
  const Buffer memory(20 * 16 * KiB);
  std::uint64_t warm = 0;
  for (int round = 0; round < 22; ++round) {
    if (round == 2) warm = num_allocations;
    for (const IoOp op : {IoOp::write, IoOp::read}) {
      Arrivals arrivals;
      for (int i = 0; i < 20; ++i) {
        const auto at = static_cast<std::uint64_t>(i) * 16 * KiB;
        store->submit(op, i, memory.span().subspan(at, 16 * KiB), IoPriority::prefetch, arrivals);
      }
      arrivals.wait_for(20);
      EXPECT_EQ(arrivals.failures(), 0);
    }
  }
  return num_allocations - warm;
}

TEST(Allocation, IsNotNeededByAStoreOnceEveryTileHasBeenTransferred) {
  const TempDirectory directory;
  const auto engine = make_threads_engine(counted_options);
  EXPECT_EQ(allocations_of_store(*engine, directory.path(), {}), 0u);
  EXPECT_EQ(allocations_of_store(*engine, directory.path(),
                                 {.checksums = Checksums::on, .verify = Verify::reads}),
            0u);
}

}  // namespace
}  // namespace strata::testing
