#pragma once
// Host memory that a CUDA device copies from and to at full speed: mapped on huge pages where the
// system grants them, placed, and registered with the runtime.
//
// It is registered in chunks, which end wherever an address is a multiple of pinned_chunk_bytes:
// drivers refuse large registrations that they grant in parts, and one refusal then tells how far
// it went. CUDA does not promise that one copy may span two registrations, so copies end there too;
// the address alone tells where.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "cuda_api.hpp"
#include "strata/core/bytes.hpp"
#include "strata/device/device.hpp"

namespace strata {

inline constexpr std::uint64_t pinned_chunk_bytes = GiB;

// Of so many bytes of host memory, those that one registration or one copy may take.
inline std::uint64_t bytes_within_chunk(const std::byte* memory, std::uint64_t bytes) {
  const std::uint64_t into = reinterpret_cast<std::uintptr_t>(memory) % pinned_chunk_bytes;
  return std::min(bytes, pinned_chunk_bytes - into);
}

// Calls each(begin, size) for all of them, a chunk at a time.
template <typename Each>
void for_each_chunk(const std::byte* memory, std::uint64_t bytes, const Each& each) {
  for (std::uint64_t begin = 0, size = 0; begin < bytes; begin += size) {
    size = bytes_within_chunk(memory + begin, bytes - begin);
    each(begin, size);
  }
}

struct PinnedMemoryOptions {
  // Called before anybody has touched it. May be empty.
  std::function<void(std::span<std::byte>)> place = {};
  // Called with the reason when it cannot be registered: it is pageable then. Empty: it must be.
  std::function<void(const std::string& why)> on_pageable = {};
};

// For the calling thread's device, which is `ordinal`. Copies that a failure has left behind are
// over before the memory is gone. Throws OutOfMemory, or CudaError when it cannot be registered and
// must be.
Slab allocate_pinned_memory(CudaApi& api, int ordinal, std::uint64_t bytes,
                            const PinnedMemoryOptions& options);

}  // namespace strata
