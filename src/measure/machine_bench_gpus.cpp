#include "machine_bench_gpus.hpp"

#include <utility>

namespace strata {

BenchGpus open_gpus(const CudaInventory& inventory, int ordinal) {
  std::vector<CudaDeviceFacts> alike = {gpu_facts(inventory, ordinal)};
  for (const CudaDeviceFacts& other : inventory.devices)
    if (other.name == alike.front().name && other.ordinal != ordinal) alike.push_back(other);
  BenchAccelerator first = open_gpu(alike.front());
  return {std::move(alike), std::move(first)};
}

}  // namespace strata
