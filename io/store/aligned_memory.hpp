#pragma once
// Memory that transfers of any drive can use: its address is a multiple of an alignment. With an
// alignment of huge_page_bytes it lies on huge pages where the system has them, from and to which
// direct transfers are two or three times as fast.
//
// Thread contract: a value that cannot be copied.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace strata {

inline constexpr std::uint64_t huge_page_bytes = std::uint64_t{2} << 20;

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
