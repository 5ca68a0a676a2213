#pragma once
// Memory for one shard or scratch: exactly as long as asked for, between two guards, filled with
// NaN when poisoned.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

#include "strata/core/tensor_view.hpp"

namespace strata::test {

class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::uint64_t bytes)
      : bytes_(bytes),
        memory_(static_cast<std::byte*>(::operator new(bytes + 2 * guard_bytes, alignment))) {
    std::memset(memory_, guard_value, bytes_ + 2 * guard_bytes);
    poison();
  }
  GuardedBuffer(GuardedBuffer&& other) noexcept : bytes_(other.bytes_), memory_(other.memory_) {
    other.memory_ = nullptr;
  }
  GuardedBuffer& operator=(GuardedBuffer&&) = delete;
  ~GuardedBuffer() { ::operator delete(memory_, alignment); }

  std::span<std::byte> bytes() const { return {memory_ + guard_bytes, bytes_}; }
  TensorView flat(DType dtype) const {
    return {bytes().data(), dtype, {static_cast<std::int64_t>(bytes_) / dtype_bytes(dtype)}};
  }

  // All bits set are a NaN in every floating-point dtype.
  void poison() const { std::ranges::fill(bytes(), std::byte{0xff}); }

  bool intact() const {
    const auto is_guard = [](std::byte value) { return value == std::byte{guard_value}; };
    return std::all_of(memory_, memory_ + guard_bytes, is_guard) &&
           std::all_of(memory_ + guard_bytes + bytes_, memory_ + 2 * guard_bytes + bytes_,
                       is_guard);
  }

 private:
  static constexpr std::uint64_t guard_bytes = 256;
  static constexpr int guard_value = 0xa5;
  static constexpr std::align_val_t alignment{256};

  std::uint64_t bytes_;
  std::byte* memory_;
};

}  // namespace strata::test
