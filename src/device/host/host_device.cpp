#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

constexpr std::uint64_t huge_page = 2 * MiB;

void unmap(std::byte* data, std::uint64_t bytes) noexcept { ::munmap(data, bytes); }

// Anonymous memory whose start is a multiple of 2 MiB, on huge pages where the system grants them:
// contiguous pages triple the rate of direct I/O (docs/design/memory.md).
Slab map_slab(std::uint64_t bytes, std::string_view what) {
  if (bytes == 0) return {};
  const std::uint64_t size = align_up(bytes, 4096);
  const std::uint64_t reserve = size + huge_page;
  void* raw = ::mmap(nullptr, reserve, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) throw OutOfMemory(what, bytes, 0, std::strerror(errno));
  auto* begin = static_cast<std::byte*>(raw);
  auto* aligned =
      reinterpret_cast<std::byte*>(align_up(reinterpret_cast<std::uintptr_t>(begin), huge_page));
  const auto head = static_cast<std::uint64_t>(aligned - begin);
  if (head > 0) ::munmap(begin, head);
  const std::uint64_t tail = reserve - head - size;
  if (tail > 0) ::munmap(aligned + size, tail);
  ::madvise(aligned, size, MADV_HUGEPAGE);  // Advice only: refusal costs speed, not correctness.
  return {aligned, size, unmap};
}

class HostEvent final : public Event {
 public:
  void synchronize() override {}
};

// Work on the host runs on the calling lane's thread and is complete on return.
class HostStream final : public Stream {
 public:
  void record(Event&) override {}
  void wait(Event&) override {}
  void synchronize() override {}
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(const HostDeviceOptions& options) : options_(options) {}

  DeviceInfo info() const override { return {"host", options_.memory_bytes, -1}; }
  std::unique_ptr<Stream> make_stream(std::string_view) override {
    return std::make_unique<HostStream>();
  }
  std::unique_ptr<Event> make_event() override { return std::make_unique<HostEvent>(); }

  Slab allocate(std::uint64_t bytes) override {
    const std::uint64_t free = options_.memory_bytes - allocated_;
    if (bytes > free) throw OutOfMemory("the host device", bytes, free);
    allocated_ += bytes;
    return map_slab(bytes, "the host device's memory");
  }
  Slab allocate_pinned(std::uint64_t bytes) override { return map_slab(bytes, "host memory"); }

  void copy(std::byte* target, const std::byte* source, std::uint64_t bytes, CopyKind kind,
            Stream&) override {
    const std::int64_t end = reserve(kind, bytes);
    std::memcpy(target, source, bytes);
    wait_until(end);
  }

  void zero(std::byte* target, std::uint64_t bytes, Stream&) override {
    std::memset(target, 0, bytes);
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
