// Seconds that a drive takes to read and write so many bytes at once, through the engine and
// buffers that training uses.
//
//   transfer_bench DIRECTORY BYTES_EACH_WAY

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <latch>
#include <memory>
#include <string>
#include <vector>

#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "strata/device/device.hpp"
#include "strata/io/store/shard_store.hpp"

namespace strata {
namespace {

constexpr std::uint64_t tile_bytes = 16 * MiB;
constexpr int slots = 16;

class Countdown : public IoCompletion {
 public:
  explicit Countdown(std::ptrdiff_t count) : left_(count) {}
  void complete(const IoResult& result) noexcept override {
    if (!result.ok()) fmt::print(stderr, "{}\n", result.message);
    left_.count_down();
  }
  void wait() { left_.wait(); }

 private:
  std::latch left_;
};

std::unique_ptr<ShardStore> make_store(IoEngine& engine, const std::string& directory, int tiles) {
  StoreSpec spec;
  spec.directories = {directory};
  for (int tile = 0; tile < tiles; ++tile)
    spec.tiles.push_back({fmt::format("bench tile {}", tile), tile_bytes, 0});
  return ShardStore::create(engine, spec, {});
}

std::span<std::byte> slot(const Slab& memory, int tile) {
  return {memory.data() + static_cast<std::uint64_t>(tile % slots) * tile_bytes, tile_bytes};
}

double run(ShardStore& store, const Slab& memory) {
  const int tiles = store.num_tiles() / 2;  // The first half is read, the other written.
  Countdown countdown(2 * tiles);
  const std::int64_t start = now_ns();
  for (int tile = 0; tile < tiles; ++tile) {
    store.submit(IoOp::read, tile, slot(memory, tile), IoPriority::prefetch, countdown);
    store.submit(IoOp::write, tiles + tile, slot(memory, tile), IoPriority::write_back, countdown);
  }
  countdown.wait();
  return seconds(now_ns() - start);
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  using namespace strata;
  if (argc != 3) {
    fmt::print(stderr, "usage: transfer_bench DIRECTORY BYTES_EACH_WAY\n");
    return 2;
  }
  try {
    const std::uint64_t wanted = parse_bytes(argv[2]);
    const int tiles = static_cast<int>(std::max<std::uint64_t>(1, wanted / tile_bytes));
    auto engine = make_io_engine("auto", {});
    auto store = make_store(*engine, argv[1], 2 * tiles);
    auto device = make_host_device({});
    const Slab memory = device->allocate_pinned(slots * tile_bytes);
    engine->register_memory({memory.data(), memory.bytes()});
    // Blocks never written would be read without the drive.
    for (int tile = 0; tile < 2 * tiles; ++tile)
      store->transfer(IoOp::write, tile, slot(memory, tile));
    std::vector<double> times;
    for (int round = 0; round < 5; ++round) times.push_back(run(*store, memory));
    std::ranges::sort(times);
    engine->unregister_memory({memory.data(), memory.bytes()});
    const double moved = static_cast<double>(tiles) * static_cast<double>(tile_bytes);
    fmt::print("seconds {:.4f}\n", times[2] * static_cast<double>(wanted) / moved);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "transfer_bench: {}\n", error.what());
    return 1;
  }
}
