// A step may allocate nothing, so neither may a request.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "contract/io/io_testing.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

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

// Allocations of 20 rounds of 40 requests after two rounds to warm up.
std::uint64_t allocations_of(IoEngine& engine, const std::string& path) {
  const FileId file = engine.open(path, OpenMode::read_write_create, Caching::direct);
  engine.preallocate(file, 40 * 16 * KiB);
  const Buffer memory(40 * 16 * KiB);
  Counter counter;
  std::vector<IoRequest> requests;
  for (std::uint64_t at = 0; at < memory.bytes(); at += 16 * KiB) {
    const auto priority = static_cast<IoPriority>(requests.size() % num_io_priorities);
    requests.push_back(
        request(IoOp::write, file, at, memory.span().subspan(at, 16 * KiB), &counter, priority));
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

constexpr IoOptions options = {.queue_depth = 8, .chunk_bytes = 8 * KiB, .num_threads = 2};

TEST(Allocation, TheCountSeesAllocations) {
  const std::uint64_t before = num_allocations;
  const auto memory = std::make_unique<std::vector<int>>(100);
  EXPECT_GE(num_allocations - before, 2u);
}

TEST(Allocation, IsNotNeededByTheThreadsEngineInTheSteadyState) {
  const TempDirectory directory;
  EXPECT_EQ(allocations_of(*make_threads_engine(options), directory.file("tiles")), 0u);
}

TEST(Allocation, IsNotNeededByTheUringEngineInTheSteadyState) {
  const TempDirectory directory;
  std::unique_ptr<IoEngine> engine;
  try {
    engine = make_uring_engine(options);
  } catch (const SystemError& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_EQ(allocations_of(*engine, directory.file("tiles")), 0u);
}

}  // namespace
}  // namespace strata::testing
