// Seconds that a drive takes to read and write so many bytes at once, through the engine and
// buffers that training uses.
//
//   transfer_bench DIRECTORY BYTES_EACH_WAY

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <latch>
#include <string>
#include <vector>

#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "strata/device/device.hpp"
#include "strata/io/store/tile_store.hpp"

namespace strata {
namespace {

constexpr std::uint64_t tile_bytes = 16 * MiB;
constexpr std::uint64_t slots = 16;

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

double run(TileStore& store, const Slab& memory, std::uint64_t tiles) {
  Countdown countdown(static_cast<std::ptrdiff_t>(2 * tiles));
  const std::int64_t start = now_ns();
  for (std::uint64_t tile = 0; tile < tiles; ++tile) {
    const std::span<std::byte> slot(memory.data() + tile % slots * tile_bytes, tile_bytes);
    store.submit(IoOp::read, 0, tile * tile_bytes, slot, IoPriority::prefetch, countdown);
    store.submit(IoOp::write, 0, (tiles + tile) * tile_bytes, slot, IoPriority::write_back,
                 countdown);
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
    const std::uint64_t tiles = std::max<std::uint64_t>(1, parse_bytes(argv[2]) / tile_bytes);
    auto engine = make_io_engine("auto", {});
    const DriveExtent drive{argv[1], 2 * tiles * tile_bytes};
    TileStore store(*engine, {&drive, 1});
    auto device = make_host_device({});
    const Slab memory = device->allocate_pinned(slots * tile_bytes);
    engine->register_memory({memory.data(), memory.bytes()});
    for (std::uint64_t tile = 0; tile < 2 * tiles;
         ++tile)  // Blocks never written would be read without the drive.
      store.transfer(IoOp::write, 0, tile * tile_bytes,
                     {memory.data() + tile % slots * tile_bytes, tile_bytes});
    std::vector<double> times;
    for (int round = 0; round < 5; ++round) times.push_back(run(store, memory, tiles));
    std::ranges::sort(times);
    engine->unregister_memory({memory.data(), memory.bytes()});
    fmt::print("seconds {:.4f}\n", times[2] * (static_cast<double>(parse_bytes(argv[2])) /
                                               static_cast<double>(tiles * tile_bytes)));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "transfer_bench: {}\n", error.what());
    return 1;
  }
}
