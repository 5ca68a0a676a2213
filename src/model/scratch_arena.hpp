#pragma once
// A ScratchArena hands out pieces of a segment's scratch, one after the other. Without memory it
// only counts, so the code that lays out a segment's scratch also tells how much the segment
// declares. Thread contract: one thread.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strata/core/bytes.hpp"
#include "strata/core/tensor_view.hpp"

namespace strata {

class ScratchArena {
 public:
  static constexpr std::uint64_t alignment = 256;
  static constexpr std::uintptr_t min_base_alignment = 64;

  ScratchArena() = default;  // counts; its views are empty
  explicit ScratchArena(std::span<std::byte> memory) : memory_(memory), counts_only_(false) {
    ensure(reinterpret_cast<std::uintptr_t>(memory.data()) % min_base_alignment == 0);
  }

  TensorView take(DType dtype, Shape shape) {
    const auto bytes = static_cast<std::uint64_t>(shape.count() * dtype_bytes(dtype));
    return {take_bytes(bytes).data(), dtype, shape};
  }

  std::span<std::byte> take_bytes(std::uint64_t bytes) {
    const std::uint64_t begin = position_;
    position_ = align_up(begin + bytes, alignment);
    peak_ = std::max(peak_, position_);
    if (counts_only_) return {};
    ensure(position_ <= memory_.size());
    return memory_.subspan(begin, bytes);
  }

  // What was taken since `position` may be handed out again.
  std::uint64_t position() const { return position_; }
  void rewind(std::uint64_t position) { position_ = position; }

  std::uint64_t peak_bytes() const { return peak_; }

 private:
  std::span<std::byte> memory_;
  bool counts_only_ = true;
  std::uint64_t position_ = 0;
  std::uint64_t peak_ = 0;
};

}  // namespace strata
