#include "strata/train/rank_device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/rank_sum.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/binding.hpp"

namespace strata {
namespace {

DeviceChoice refuse_or_stand_in(const RunConfig& config, const std::string& why) {
  if (config.device == DeviceKind::gpu)
    throw ConfigError(fmt::format(
        "device: gpu: several ranks need NCCL: {}; or set ranks: 1, or device: cpu", why));
  return {{}, fmt::format("the host computes, not the GPUs: {}", why)};
}

void check_one_each(std::ptrdiff_t gpus, int ranks) {
  if (gpus >= ranks) return;
  throw ConfigError(fmt::format(
      "{} ranks on this host, but {} GPU{} in sight (every process must see all of the host's: "
      "CUDA_VISIBLE_DEVICES or the launcher may hide some): run no more ranks than GPUs, or set "
      "device: cpu",
      ranks, gpus, gpus == 1 ? "" : "s"));
}

std::string describe(const CudaDeviceFacts& facts, std::uint64_t free_bytes) {
  return fmt::format(
      "{}, GPU {}, {} free{}", facts.name, facts.ordinal, format_bytes(free_bytes),
      facts.numa_node < 0 ? "" : fmt::format(", near NUMA node {}", facts.numa_node));
}

}  // namespace

DeviceChoice choose_device(const RunConfig& config, const CudaInventory& inventory,
                           const NcclFacts& nccl, int num_host_ranks) {
  if (config.device == DeviceKind::cpu || config.kernels == KernelsKind::ref) return {};
  const auto& found = inventory.devices;
  if (found.empty()) {
    if (config.device == DeviceKind::automatic) return {};
    throw ConfigError(fmt::format(
        "device: gpu, but there is none: {}. strata doctor tells more; device: cpu runs on the "
        "host",
        inventory.failure));
  }
  check_one_each(std::ssize(found), num_host_ranks);
  if (config.world > 1 && !nccl.failure.empty()) return refuse_or_stand_in(config, nccl.failure);
  return {{found.begin(), found.begin() + num_host_ranks}, ""};
}

DeviceChoice choose_device_here(const RunConfig& config, int num_host_ranks) {
  const CudaInventory inventory = read_cuda_devices();
  const bool exchanges = config.world > 1 && !inventory.devices.empty();
  return choose_device(config, inventory, exchanges ? read_nccl() : NcclFacts{}, num_host_ranks);
}

DeviceKind planned_device(const RunConfig& config, const MachineProfile& machine) {
  if (config.kernels == KernelsKind::ref) return DeviceKind::cpu;
  if (config.device != DeviceKind::automatic) return config.device;
  return machine.accelerator.name == host_accelerator_name ? DeviceKind::cpu : DeviceKind::gpu;
}

std::uint64_t device_workspace_bytes(int world) {
  return cuda::kernels_workspace_bytes + (world > 1 ? nccl_staging_bytes : 0);
}

RankDevice open_rank_device(const DeviceChoice& choice, int host_rank, int world) {
  RankDevice opened;
  if (!choice.uses_gpus()) return opened;
  const CudaDeviceFacts& facts = choice.gpus.at(static_cast<std::size_t>(host_rank));
  opened.device = make_cuda_device(facts.ordinal,
                                   {.peers = {}, .place_pinned = placer_on_node(facts.numa_node)});
  opened.description = describe(facts, opened.device->free_bytes());
  opened.workspace = opened.device->allocate(device_workspace_bytes(world));
  const std::span all(opened.workspace.data(), opened.workspace.bytes());
  opened.staging = all.subspan(cuda::kernels_workspace_bytes);
  opened.device->use_on_this_thread();
  opened.kernels =
      cuda::make_cuda_kernels({facts.ordinal, all.first(cuda::kernels_workspace_bytes)});
  if (world > 1) opened.sum = cuda::make_rank_sum(facts.ordinal);
  for (const CudaDeviceFacts& gpu : choice.gpus) opened.near_nodes.push_back(gpu.numa_node);
  return opened;
}

std::uint64_t device_reserve_bytes(std::uint64_t free_bytes, int world) {
  const std::uint64_t own = std::min(GiB, free_bytes / 16);
  return world > 1 ? 5 * own : own;
}

std::uint64_t device_limit(const RunConfig& config, std::span<const std::uint64_t> free_bytes) {
  const std::uint64_t free = *std::ranges::min_element(free_bytes);
  const std::uint64_t there = free - device_reserve_bytes(free, config.world);
  if (!config.offload.gpu_limit) return there;
  const std::uint64_t limit = *config.offload.gpu_limit,
                      workspace = device_workspace_bytes(config.world);
  if (limit > workspace) return std::min(limit - workspace, there);
  throw ConfigError(fmt::format(
      "offload.gpu_limit: {} leaves nothing: kernels and sums over ranks work in {} of a GPU's",
      format_bytes(limit), format_bytes(workspace)));
}

}  // namespace strata
