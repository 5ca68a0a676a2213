#include "link_bench.hpp"

#include <algorithm>
#include <barrier>
#include <thread>

#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/device/device.hpp"
#include "strata/measure/samples.hpp"

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
        stream_(device.make_stream("copy")) {}

  void copy() {
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

double rate_alone(CopyLane& lane, int repeats) {
  lane.copy();
  Samples rates;
  for (int i = 0; i < repeats; ++i) rates.values.push_back(lane.rate());
  return rates.median();
}

// Both start together; what one still has to copy when the other has ended counts as less.
double rate_together(CopyLane& up, CopyLane& down) {
  std::barrier start(2);
  std::thread other([&] {
    start.arrive_and_wait();
    down.copy();
  });
  start.arrive_and_wait();
  const std::int64_t begin = now_ns();
  up.copy();
  other.join();
  return (up.bytes() + down.bytes()) / std::max(seconds(now_ns() - begin), 1e-9);
}

}  // namespace

LinkProfile bench_link(std::uint64_t bytes, MachineBenchRun& run) {
  const auto device = make_host_device({});
  CopyLane up(*device, CopyKind::host_to_device, bytes);
  CopyLane down(*device, CopyKind::device_to_host, bytes);
  LinkProfile link;
  run.progress.begin("copies, host to device", 1);
  link.up_bytes_per_s = rate_alone(up, run.repeats);
  run.progress.begin("copies, device to host", 1);
  link.down_bytes_per_s = rate_alone(down, run.repeats);
  run.progress.begin("copies, both ways", 1);
  Samples both;
  for (int i = 0; i < run.repeats; ++i) both.values.push_back(rate_together(up, down));
  link.both_bytes_per_s = std::min(both.median(), link.up_bytes_per_s + link.down_bytes_per_s);
  return link;
}

}  // namespace strata
