#include "link_bench.hpp"

#include <algorithm>
#include <barrier>
#include <future>

#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"

namespace strata {
namespace {

constexpr std::uint64_t tile_bytes = 16 * MiB;

// One direction: a buffer on each side, and the stream of its lane.
class CopyLane {
 public:
  CopyLane(Device& device, CopyKind kind, std::uint64_t bytes)
      : device_(device),
        kind_(kind),
        pinned_(device.allocate_pinned(bytes)),
        memory_(device.allocate(bytes)),
        stream_(device.make_stream("copy")) {
    // What was never written is read too fast.
    device.fill(pinned_.data(), bytes, std::byte{1}, *stream_);
    device.fill(memory_.data(), bytes, std::byte{1}, *stream_);
    stream_->synchronize();
  }

  // May be called from a thread of its own.
  void copy() {
    device_.use_on_this_thread();
    const bool up = kind_ == CopyKind::host_to_device;
    std::byte* target = up ? memory_.data() : pinned_.data();
    const std::byte* source = up ? pinned_.data() : memory_.data();
    for (std::uint64_t at = 0; at < memory_.bytes(); at += tile_bytes)
      device_.copy(target + at, source + at, std::min(tile_bytes, memory_.bytes() - at), kind_,
                   *stream_);
    stream_->synchronize();
  }
  double bytes() const { return static_cast<double>(memory_.bytes()); }
  double rate() {
    const std::int64_t begin = now_ns();
    copy();
    return bytes() / std::max(seconds(now_ns() - begin), 1e-9);
  }

 private:
  Device& device_;
  CopyKind kind_;
  Slab pinned_, memory_;
  std::unique_ptr<Stream> stream_;
};

Samples rates_alone(CopyLane& lane, int repeats) {
  lane.copy();
  Samples rates;
  for (int i = 0; i < repeats; ++i) rates.values.push_back(lane.rate());
  return rates;
}

// Both start together; what one still has to copy when the other has ended counts as less. Counted
// from when the first has begun: the machine may let the other run later.
double rate_together(CopyLane& up, CopyLane& down) {
  std::barrier start(2);
  auto other = std::async(std::launch::async, [&] {
    start.arrive_and_wait();
    const std::int64_t begin = now_ns();
    down.copy();
    return begin;
  });
  start.arrive_and_wait();
  std::int64_t begin = now_ns();
  up.copy();
  begin = std::min(begin, other.get());
  return (up.bytes() + down.bytes()) / std::max(seconds(now_ns() - begin), 1e-9);
}

Samples rates_together(CopyLane& up, CopyLane& down, int repeats) {
  Samples rates;
  for (int i = 0; i < repeats; ++i) rates.values.push_back(rate_together(up, down));
  return rates;
}

}  // namespace

LinkProfile LinkRates::profile() const {
  const double alone = up.median() + down.median();
  return {up.median(), down.median(), std::min(both.median(), alone)};
}

LinkRates bench_link(Device& device, std::uint64_t bytes, int repeats, BenchProgress& progress) {
  CopyLane up(device, CopyKind::host_to_device, bytes);
  CopyLane down(device, CopyKind::device_to_host, bytes);
  LinkRates link;
  progress.begin("copies, host to device", 1);
  link.up = rates_alone(up, repeats);
  progress.begin("copies, device to host", 1);
  link.down = rates_alone(down, repeats);
  progress.begin("copies, both ways", 1);
  link.both = rates_together(up, down, repeats);
  return link;
}

}  // namespace strata
