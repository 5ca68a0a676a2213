#include "device/cuda/pinned_memory.hpp"

#include <fmt/format.h>

#include <memory>

#include "device/cuda/cuda_check.hpp"
#include "device/host_memory.hpp"
#include "strata/core/bytes.hpp"

namespace strata {

Slab allocate_pinned_memory(CudaApi& api, int ordinal, std::uint64_t bytes,
                            const std::function<void(std::span<std::byte>)>& place) {
  if (bytes == 0) return {};
  auto mapped = std::make_shared<Slab>(map_host_memory(bytes, "pinned host memory"));
  if (place) place({mapped->data(), mapped->bytes()});
  check(api, api.register_host(mapped->data(), mapped->bytes()),
        fmt::format("cudaHostRegister of {} of host memory", format_bytes(mapped->bytes())));
  return {mapped->data(), mapped->bytes(), [mapped, &api, ordinal](std::byte* data, std::uint64_t) {
            api.set_device(ordinal);
            api.synchronize();
            api.unregister_host(data);
          }};
}

}  // namespace strata
