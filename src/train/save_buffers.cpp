#include "train/save_buffers.hpp"

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {

std::uint64_t SaveBuffers::bytes_of_one(const Program& program) {
  return align_up(static_cast<std::uint64_t>(program.tile_elements) * sizeof(float),
                  checkpoint_alignment);
}

SaveBuffers::SaveBuffers(const Program& program, std::span<std::byte> memory) {
  const auto bytes = static_cast<std::size_t>(bytes_of_one(program));
  for (; memory.size() >= bytes; memory = memory.subspan(bytes))
    buffers_.push_back(std::make_unique<SaveBuffer>(memory.first(bytes)));
  ensure(!buffers_.empty());
}

SaveBuffer& SaveBuffers::next() {
  SaveBuffer& buffer = *buffers_[next_++ % buffers_.size()];
  if (!buffer.wait()) has_failed_ = true;
  return buffer;
}

void SaveBuffers::reset() {
  for (const auto& buffer : buffers_) buffer->wait();
  has_failed_ = false;
}

}  // namespace strata
