#include "kernels/cpu/attention_buffers.hpp"

#include <memory>

namespace strata::cpu {

TileBuffers& thread_tile_buffers() {
  thread_local const auto buffers = std::make_unique<TileBuffers>();
  return *buffers;
}

}  // namespace strata::cpu
