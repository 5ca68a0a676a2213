#pragma once
// Memory that transfers of any drive can use: its address is a multiple of an alignment.
//
// Thread contract: a value that cannot be copied.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace strata {

class AlignedMemory {
 public:
  // Throws OutOfMemory naming `user`.
  AlignedMemory(std::uint64_t alignment, std::uint64_t bytes, const char* user);
  std::span<std::byte> span() const { return {memory_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::uint64_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace strata
