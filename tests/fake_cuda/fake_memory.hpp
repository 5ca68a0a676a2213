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

class FakeMemory {
 public:
  // Filled with rubbish, as memory of others would be. Null: there is not as much.
  void* allocate(std::uint64_t bytes, std::uint64_t limit_bytes);
  bool release(void* data) { return device_.erase(static_cast<std::byte*>(data)) == 1; }
  bool register_host(void* data, std::uint64_t bytes);
  bool unregister_host(void* data) { return host_.erase(static_cast<std::byte*>(data)) == 1; }

  std::uint64_t used_bytes() const { return used(device_); }
  // Where all of it lies; unregistered: in none, or not in one.
  CudaPointer kind_of(const void* data, std::uint64_t bytes = 1) const;
  std::size_t num_allocations() const { return device_.size(); }
  std::size_t num_registrations() const { return host_.size(); }

 private:
  struct Range {
    std::uint64_t bytes = 0;
    std::unique_ptr<std::byte[]> owned;
  };
  using Ranges = std::map<std::byte*, Range>;
  static std::uint64_t used(const Ranges& ranges);
  static bool contains(const Ranges& ranges, const std::byte* data, std::uint64_t bytes);

  Ranges device_, host_;
};

}  // namespace strata::testing
