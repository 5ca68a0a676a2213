#include "bench_accelerator.hpp"

#include <fmt/format.h>

#include "kernels/cuda/cuda_kernels.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/binding.hpp"

namespace strata {
CudaDeviceFacts gpu_facts(const CudaInventory& inventory, int ordinal) {
  if (inventory.devices.empty())
    throw ConfigError(fmt::format("there is no GPU to measure: {}", inventory.failure));
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= inventory.devices.size())
    throw ConfigError(fmt::format(
        "there is no GPU {}: this machine has {}, counted from 0 (CUDA_VISIBLE_DEVICES may hide "
        "some)",
        ordinal, inventory.devices.size()));
  return inventory.devices[static_cast<std::size_t>(ordinal)];
}

BenchAccelerator open_gpu(const CudaDeviceFacts& gpu) {
  std::unique_ptr<Device> device =
      make_cuda_device(gpu.ordinal, {.peers = {}, .place_pinned = placer_on_node(gpu.numa_node)});
  device->use_on_this_thread();
  Slab workspace = device->allocate(cuda::kernels_workspace_bytes);
  auto kernels = cuda::make_cuda_kernels(
      {.ordinal = gpu.ordinal, .workspace = {workspace.data(), workspace.bytes()}});
  return {std::move(device), std::move(workspace), std::move(kernels)};
}

BenchAccelerator host_accelerator(std::unique_ptr<Kernels> kernels) {
  return {make_host_device({}), {}, std::move(kernels)};
}

}  // namespace strata
