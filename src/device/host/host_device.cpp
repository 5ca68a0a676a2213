#include <algorithm>
#include <cstring>
#include <mutex>
#include <thread>

#include "device/host_memory.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

class HostEvent final : public Event {
 public:
  void synchronize() override {}
  bool is_reached() override { return true; }
  std::int64_t time_ns() override { return reached_ns_; }
  void reach() { reached_ns_ = now_ns(); }

 private:
  std::int64_t reached_ns_ = 0;
};

// Work on the host runs on the calling lane's thread and is complete on return.
class HostStream final : public Stream {
 public:
  void record(Event& event) override { static_cast<HostEvent&>(event).reach(); }
  void wait(Event&) override {}
  void synchronize() override {}
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(const HostDeviceOptions& options) : options_(options) {}

  DeviceInfo info() const override { return {"host", options_.memory_bytes, -1}; }
  std::uint64_t free_bytes() override { return options_.memory_bytes - allocated_; }
  std::unique_ptr<Stream> make_stream(std::string_view) override {
    return std::make_unique<HostStream>();
  }
  std::unique_ptr<Event> make_event() override { return std::make_unique<HostEvent>(); }

  Slab allocate(std::uint64_t bytes) override {
    if (bytes > free_bytes()) throw OutOfMemory("the host device", bytes, free_bytes());
    allocated_ += bytes;
    return map_host_memory(bytes, "the host device's memory");
  }
  Slab allocate_pinned(std::uint64_t bytes) override {
    return map_host_memory(bytes, "host memory");
  }

  void copy(std::byte* target, const std::byte* source, std::uint64_t bytes, CopyKind kind,
            Stream&) override {
    const std::int64_t end = reserve(kind, bytes);
    std::memcpy(target, source, bytes);
    wait_until(end);
  }

  void fill(std::byte* target, std::uint64_t bytes, std::byte value, Stream&) override {
    std::memset(target, std::to_integer<int>(value), bytes);
  }

 private:
  double link_rate(CopyKind kind) const {
    if (kind == CopyKind::host_to_device) return options_.host_to_device_bytes_per_s;
    if (kind == CopyKind::device_to_host) return options_.device_to_host_bytes_per_s;
    return 0;
  }
  // When a link of the stated rate is through with this copy: lanes that use one direction at a
  // time take turns on it.
  std::int64_t reserve(CopyKind kind, std::uint64_t bytes) {
    const double rate = link_rate(kind);
    if (rate <= 0) return 0;
    const auto taken = static_cast<std::int64_t>(static_cast<double>(bytes) / rate * 1e9);
    std::lock_guard lock(links_);
    std::int64_t& free = kind == CopyKind::host_to_device ? up_free_ns_ : down_free_ns_;
    free = std::max(free, now_ns()) + taken;
    return free;
  }
  static void wait_until(std::int64_t end_ns) {
    const std::int64_t left = end_ns - now_ns();
    if (left > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(left));
  }
  HostDeviceOptions options_;
  std::mutex links_;
  std::int64_t up_free_ns_ = 0, down_free_ns_ = 0;  // guarded by links_
  std::uint64_t allocated_ = 0;  // Slabs live as long as the run: never given back.
};

}  // namespace

std::unique_ptr<Device> make_host_device(const HostDeviceOptions& options) {
  return std::make_unique<HostDevice>(options);
}

}  // namespace strata
