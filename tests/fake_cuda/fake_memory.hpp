#pragma once
// Memory of a fake device, which is host memory, and the host memory registered with it. Thread
// contract: the caller holds one lock over all calls.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/device/cuda/cuda_api.hpp"
#include "strata/device/device.hpp"

namespace strata::testing {

// What happens to a host that touches device memory itself.
enum class HostTouch : std::uint8_t { allowed, faults };

class FakeMemory {
 public:
  explicit FakeMemory(HostTouch host = HostTouch::allowed) : host_touch_(host) {}
  // Filled with rubbish, as memory of others would be. Null: there is not as much.
  void* allocate(std::uint64_t bytes, std::uint64_t limit_bytes);
  bool release(void* data) { return device_.erase(static_cast<std::byte*>(data)) == 1; }
  bool register_host(void* data, std::uint64_t bytes);
  bool unregister_host(void* data) { return host_.erase(static_cast<std::byte*>(data)) == 1; }

  // Lets work of a stream at the pages of a part of it, or no longer, where the host may not touch
  // it. Nothing for memory that is not the device's.
  void open(const std::byte* data, std::uint64_t bytes) { protect(data, bytes, true); }
  void close(const std::byte* data, std::uint64_t bytes) { protect(data, bytes, false); }

  std::uint64_t used_bytes() const { return used(device_); }
  // Where all of it lies; unregistered: in none, or not in one.
  CudaPointer kind_of(const void* data, std::uint64_t bytes = 1) const;
  std::size_t num_allocations() const { return device_.size(); }
  std::size_t num_registrations() const { return host_.size(); }
  std::vector<std::uint64_t> registrations() const;  // bytes of each, by address

 private:
  struct Range {
    std::uint64_t bytes = 0;
    std::shared_ptr<std::byte> owned;
  };
  using Ranges = std::map<std::byte*, Range>;
  std::shared_ptr<std::byte> make(std::uint64_t bytes) const;
  void protect(const std::byte* data, std::uint64_t bytes, bool is_open);
  static std::uint64_t used(const Ranges& ranges);
  static bool contains(const Ranges& ranges, const std::byte* data, std::uint64_t bytes);

  const HostTouch host_touch_;
  Ranges device_, host_;
};

}  // namespace strata::testing
