#pragma once
// Device memory where the other ranks' values of a sum arrive, cut into as many slots as a call
// wants. Calls may come on different streams: each waits for the one before. One thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {

class NcclStaging {
 public:
  static constexpr std::int64_t slot_alignment = 256;

  NcclStaging(std::span<std::byte> memory, Device& device)
      : memory_(memory), passed_(device.make_event()) {}

  // Of each of so many slots, whole elements of every type.
  std::int64_t slot_bytes(int num_slots) const {
    const std::int64_t bytes = static_cast<std::int64_t>(memory_.size()) / num_slots;
    return bytes / slot_alignment * slot_alignment;
  }
  std::byte* slot(int index, int num_slots) const {
    return memory_.data() + index * slot_bytes(num_slots);
  }

  void begin_use(Stream& stream) {
    if (last_ != nullptr && last_ != stream.native()) stream.wait(*passed_);
  }
  void end_use(Stream& stream) {
    stream.record(*passed_);
    last_ = stream.native();
  }

 private:
  std::span<std::byte> memory_;
  std::unique_ptr<Event> passed_;
  void* last_ = nullptr;  // the stream that used it last
};

}  // namespace strata
