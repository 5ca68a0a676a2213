#pragma once
// Memory of one thread that grows to the largest size asked for and stays: no allocation in the
// steady state. Thread contract: an object belongs to one thread.

#include <cstddef>
#include <new>

namespace strata::cpu {

class ScratchBuffer {
 public:
  ScratchBuffer() = default;
  ScratchBuffer(const ScratchBuffer&) = delete;
  ScratchBuffer& operator=(const ScratchBuffer&) = delete;
  ~ScratchBuffer() { release(); }

  // At least `bytes` bytes on a page boundary; what an earlier call returned is lost.
  std::byte* reserve(std::size_t bytes) {
    if (bytes > bytes_) grow(bytes);
    return data_;
  }
  float* floats(std::size_t count) {
    return reinterpret_cast<float*>(reserve(count * sizeof(float)));
  }

 private:
  static constexpr std::align_val_t alignment{4096};

  void grow(std::size_t bytes) {
    release();
    bytes_ = 0;
    data_ = static_cast<std::byte*>(::operator new(bytes, alignment));
    bytes_ = bytes;
  }
  void release() {
    ::operator delete(data_, alignment);
    data_ = nullptr;
  }

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace strata::cpu
