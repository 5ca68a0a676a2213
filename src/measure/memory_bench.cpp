#include "strata/measure/memory_bench.hpp"

#include <fmt/format.h>

#include "bench_threads.hpp"
#include "measure/stream_passes.hpp"
#include "page_backing.hpp"
#include "pass_bench.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/device/device.hpp"
#include "strata/measure/adam_passes.hpp"

namespace strata {
namespace {

constexpr std::uint64_t array_bytes_min = 1 * MiB, array_bytes_max = 1024 * GiB;
constexpr double double_bytes = 8;
constexpr std::int64_t chunk_doubles = bench_chunk_elements / 2;  // as many bytes as of floats

// The optimizer's layouts with the most, fewer and the fewest bytes.
std::vector<AdamLayout> shapes() {
  const UpdateRule adamw = UpdateRule::adamw;
  return {{adamw, DType::f32, DType::f32, DType::f32},
          {adamw, DType::bf16, DType::f32, DType::f32},
          {adamw, DType::bf16, DType::u16, DType::f32},
          {adamw, DType::bf16, DType::u16, DType::bf16},
          {adamw, DType::bf16, DType::u16, DType::q8}};
}

std::uint64_t array_bytes_of(const MemoryBenchOptions& options) {
  return align_up(options.array_bytes, 2 * MiB);
}

void check_options(const MemoryBenchOptions& options) {
  check_repeats(options.repeats);
  check_threads(options.threads);
  if (options.array_bytes < array_bytes_min || options.array_bytes > array_bytes_max)
    throw ConfigError(fmt::format("--size {}: {} to {} are possible",
                                  format_bytes(options.array_bytes), format_bytes(array_bytes_min),
                                  format_bytes(array_bytes_max)));
  check_free_memory(3 * array_bytes_of(options), "give a smaller --size");
}

// Three arrays, first touched by the threads that work on them.
class StreamMemory {
 public:
  StreamMemory(std::uint64_t array_bytes, int num_threads)
      : pool_(BenchThreads(num_threads).make_pool()),
        slab_(make_host_device({})->allocate(3 * array_bytes)),
        count_(static_cast<std::int64_t>(array_bytes / sizeof(double))) {
    run(StreamPass::fill, StreamStores::normal);
    run(StreamPass::copy, StreamStores::normal);
    run(StreamPass::scale, StreamStores::normal);
  }
  void run(StreamPass pass, StreamStores stores) {
    auto* a = reinterpret_cast<double*>(slab_.data());
    const StreamArrays arrays{a, a + count_, a + 2 * count_};
    pool_->for_chunks(count_, chunk_doubles, [&](std::int64_t begin, std::int64_t end) {
      run_stream_pass(pass, stores, arrays, begin, end);
    });
  }
  std::int64_t count() const { return count_; }
  std::span<const std::byte> memory() const { return {slab_.data(), slab_.bytes()}; }

 private:
  std::unique_ptr<cpu::Parallel> pool_;
  Slab slab_;
  std::int64_t count_;
};

PassResult result_of(const StreamFacts& facts, StreamStores stores, const StreamMemory& memory) {
  const bool streamed = stores == StreamStores::streamed;
  PassResult result;
  result.pass = fmt::format("{}{}", facts.name, streamed ? ", streamed" : "");
  result.count = static_cast<std::uint64_t>(memory.count());
  result.bytes_per_element = double_bytes * (facts.reads + facts.writes);
  if (facts.allocates && !streamed) result.allocate_bytes_per_element = double_bytes * facts.writes;
  return result;
}

class MemoryBench {
 public:
  explicit MemoryBench(const MemoryBenchOptions& options)
      : options_(options),
        progress_(options.watch),
        sampler_(options.repeats, progress_, options.pings),
        report_(begin_pass_report(PassBench::memory, options.repeats, sampler_)) {}

  PassReport run() {
    progress_.plan(static_cast<double>(options_.threads.size() * num_passes()));
    for (const int threads : options_.threads) {
      run_streams(threads);
      for (const AdamLayout& shape : shapes()) run_shape(shape, threads);
    }
    end_pass_report(report_);
    return std::move(report_);
  }

 private:
  static std::size_t num_passes() {
    std::size_t count = shapes().size();
    for (const StreamFacts& facts : stream_facts) count += facts.allocates ? 2 : 1;
    return count;
  }
  void run_streams(int threads) {
    StreamMemory memory(array_bytes_of(options_), threads);
    report_.page_bytes = page_bytes_behind(memory.memory());
    for (const StreamFacts& facts : stream_facts) {
      run_stream(facts, StreamStores::normal, threads, memory);
      if (facts.allocates) run_stream(facts, StreamStores::streamed, threads, memory);
    }
  }
  void run_stream(const StreamFacts& facts, StreamStores stores, int threads,
                  StreamMemory& memory) {
    PassResult result = result_of(facts, stores, memory);
    result.threads = threads;
    sample({.run = [&] { memory.run(facts.pass, stores); }}, std::move(result));
  }
  // As many parameters as fill the same memory.
  void run_shape(const AdamLayout& shape, int threads) {
    const auto per_parameter = static_cast<double>(adam_passes_bytes(shape, 1 << 24)) / (1 << 24);
    const double parameters = 3 * static_cast<double>(options_.array_bytes) / per_parameter;
    PassResult result;
    result.pass = fmt::format("AdamW {}, no arithmetic", state_layout_name(shape));
    result.threads = threads;
    result.count = static_cast<std::uint64_t>(parameters) / 4096 * 4096;
    result.bytes_per_element = update_pass_bytes(shape);
    AdamPasses passes(shape, static_cast<std::int64_t>(result.count), threads);
    sample({.run = [&] { passes.touch_update(); }}, std::move(result));
  }
  void sample(const TimedPass& pass, PassResult result) {
    sampler_.sample(pass, result);
    report_.results.push_back(std::move(result));
  }

  const MemoryBenchOptions& options_;
  BenchProgress progress_;
  PassSampler sampler_;
  PassReport report_;
};

}  // namespace

PassReport bench_memory(const MemoryBenchOptions& options) {
  check_options(options);
  return MemoryBench(options).run();
}

}  // namespace strata
