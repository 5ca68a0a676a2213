#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

void give_back(std::byte* data, std::uint64_t bytes) noexcept { ::munmap(data, bytes); }

// Addresses that no page will ever stand behind: whoever touches one is stopped at once.
Slab reserve(std::uint64_t bytes) {
  if (bytes == 0) return {};
  void* begin =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED)
    throw OutOfMemory("addresses of the meta device", bytes, 0, std::strerror(errno));
  return {static_cast<std::byte*>(begin), bytes, give_back};
}

class MetaEvent final : public Event {
 public:
  void synchronize() override {}
  bool is_reached() override { return true; }
  std::int64_t time_ns() override { return 0; }
};

class MetaStream final : public Stream {
 public:
  void record(Event&) override {}
  void wait(Event&) override {}
  void synchronize() override {}
};

class MetaDevice final : public Device {
 public:
  DeviceInfo info() const override { return {"meta", ~std::uint64_t{0}, -1}; }
  std::unique_ptr<Stream> make_stream(std::string_view) override {
    return std::make_unique<MetaStream>();
  }
  std::unique_ptr<Event> make_event() override { return std::make_unique<MetaEvent>(); }
  Slab allocate(std::uint64_t bytes) override { return reserve(bytes); }
  Slab allocate_pinned(std::uint64_t bytes) override { return reserve(bytes); }
  void copy(std::byte*, const std::byte*, std::uint64_t, CopyKind, Stream&) override {}
  void fill(std::byte*, std::uint64_t, std::byte, Stream&) override {}
};

}  // namespace

std::unique_ptr<Device> make_meta_device() { return std::make_unique<MetaDevice>(); }

}  // namespace strata
