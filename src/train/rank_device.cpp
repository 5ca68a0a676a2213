#include "strata/train/rank_device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cuda/cuda_kernels.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/binding.hpp"

namespace strata {
namespace {

// Collectives work in memory that the process can read: none of them carries among GPUs yet.
constexpr const char* why_gpus_cannot_exchange =
    "several ranks need collectives among GPUs, which this build does not have";

DeviceChoice refuse_or_stand_in(const RunConfig& config) {
  if (config.device == DeviceKind::gpu)
    throw ConfigError(
        fmt::format("device: gpu: {}: set ranks: 1, or device: cpu", why_gpus_cannot_exchange));
  return {{}, fmt::format("the host computes, not the GPUs: {}", why_gpus_cannot_exchange)};
}

void check_one_each(std::ptrdiff_t gpus, int ranks) {
  if (gpus >= ranks) return;
  throw ConfigError(fmt::format(
      "{} ranks on this host, but {} GPU{} (CUDA_VISIBLE_DEVICES may hide some): run no more ranks "
      "than GPUs, or set device: cpu",
      ranks, gpus, gpus == 1 ? "" : "s"));
}

std::string describe(const CudaDeviceFacts& facts, std::uint64_t free_bytes) {
  return fmt::format(
      "{}, GPU {}, {} free{}", facts.name, facts.ordinal, format_bytes(free_bytes),
      facts.numa_node < 0 ? "" : fmt::format(", near NUMA node {}", facts.numa_node));
}

// Where a container refuses that, memory lies where the system puts it: slower, and no failure.
CudaDeviceOptions near(int node) {
  CudaDeviceOptions options;
  if (node >= 0)
    options.place_pinned = [node](std::span<std::byte> memory) {
      place_memory_on_node(memory, node);
    };
  return options;
}

}  // namespace

DeviceChoice choose_device(const RunConfig& config, const CudaInventory& inventory,
                           int num_host_ranks) {
  if (config.device == DeviceKind::cpu || config.kernels == KernelsKind::ref) return {};
  const auto& found = inventory.devices;
  if (found.empty()) {
    if (config.device == DeviceKind::automatic) return {};
    throw ConfigError(fmt::format(
        "device: gpu, but there is none: {}. strata doctor tells more; device: cpu runs on the "
        "host",
        inventory.failure));
  }
  if (config.world == 1 || config.device == DeviceKind::gpu)
    check_one_each(std::ssize(found), num_host_ranks);
  if (config.world > 1) return refuse_or_stand_in(config);
  return {{found.begin(), found.begin() + num_host_ranks}, ""};
}

DeviceKind planned_device(const RunConfig& config, const MachineProfile& machine) {
  if (config.kernels == KernelsKind::ref) return DeviceKind::cpu;
  if (config.device != DeviceKind::automatic) return config.device;
  return machine.accelerator.name == host_accelerator_name ? DeviceKind::cpu : DeviceKind::gpu;
}

RankDevice open_rank_device(const DeviceChoice& choice, int host_rank) {
  RankDevice opened;
  if (!choice.uses_gpus()) return opened;
  const CudaDeviceFacts& facts = choice.gpus.at(static_cast<std::size_t>(host_rank));
  opened.device = make_cuda_device(facts.ordinal, near(facts.numa_node));
  opened.description = describe(facts, opened.device->free_bytes());
  opened.workspace = opened.device->allocate(cuda::kernels_workspace_bytes);
  opened.device->use_on_this_thread();
  opened.kernels =
      cuda::make_cuda_kernels({facts.ordinal, {opened.workspace.data(), opened.workspace.bytes()}});
  for (const CudaDeviceFacts& gpu : choice.gpus) opened.near_nodes.push_back(gpu.numa_node);
  return opened;
}

std::uint64_t device_reserve_bytes(std::uint64_t free_bytes) {
  return std::min(GiB, free_bytes / 16);
}

std::uint64_t device_limit(const RunConfig& config, std::span<const RankDevice> devices) {
  std::uint64_t least = ~std::uint64_t{0};
  for (const RankDevice& rank : devices) {
    const std::uint64_t free = rank.device->free_bytes();
    least = std::min(least, free - device_reserve_bytes(free));
  }
  if (!config.offload.gpu_limit) return least;
  const std::uint64_t limit = *config.offload.gpu_limit, workspace = cuda::kernels_workspace_bytes;
  if (limit > workspace) return limit - workspace;
  throw ConfigError(fmt::format(
      "offload.gpu_limit: {} leaves nothing: the kernels on a GPU work in {} of its memory",
      format_bytes(limit), format_bytes(workspace)));
}

}  // namespace strata
