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

bool is_host_asked_for(const RunConfig& config) {
  return config.device == DeviceKind::cpu || config.kernels == KernelsKind::ref;
}

// Where CUDA shows no device.
DeviceChoice stand_in(const RunConfig& config, const SeenGpus& seen) {
  const std::string& why = seen.cuda.failure;
  if (config.device == DeviceKind::gpu)
    throw ConfigError(fmt::format(
        "device: gpu, but there is none: {}. strata doctor tells more; device: cpu runs on the "
        "host",
        why));
  const std::size_t gpus = num_own_gpus(seen.kernel);
  if (gpus == 0) return {};
  if (seen.cuda.is_hidden) return {{}, "CUDA_VISIBLE_DEVICES hides the GPUs: the host computes"};
  // Nobody has set this machine, or this build, up for CUDA.
  if (!seen.cuda.is_built || std::ranges::count(seen.kernel.gpus, "nvidia", &GpuFacts::driver) == 0)
    return {{},
            fmt::format("the host computes, not the {} NVIDIA GPU{} of this machine: {}", gpus,
                        gpus == 1 ? "" : "s", why)};
  throw ConfigError(fmt::format(
      "device: auto, and this machine has {} NVIDIA GPU{}, which cannot be used: {}. strata doctor "
      "tells more; device: cpu computes on the host all the same, many times slower",
      gpus, gpus == 1 ? "" : "s", why));
}

std::string note_of_unused(const RunConfig& config, std::ptrdiff_t gpus, int used) {
  if (gpus == used) return "";
  return fmt::format("{} of {} GPUs {} used; {}", used, gpus, used == 1 ? "is" : "are",
                     config.world == config.ranks
                         ? fmt::format("ranks: {} uses all", gpus)
                         : fmt::format("{} ranks on this host use all", gpus));
}

void check_one_each(std::ptrdiff_t gpus, int ranks) {
  if (gpus >= ranks) return;
  throw ConfigError(fmt::format(
      "{} ranks on this host, but {} GPU{} in sight (every process must see all of the host's: "
      "CUDA_VISIBLE_DEVICES or the launcher may hide some): run no more ranks than GPUs, or set "
      "device: cpu",
      ranks, gpus, gpus == 1 ? "" : "s"));
}

std::string pageable_warning(const std::string& why) {
  return fmt::format(
      "{}. The run goes on with tier cpu in memory that is not pinned: a thread of each lane "
      "copies "
      "it through small buffers, at a few GB/s where the link does 12 to 50, and each copy from "
      "the GPU holds its lane up. A step that moves much may take several times as long as "
      "predicted; its bits are the same",
      why);
}

std::string describe(const CudaDeviceFacts& facts, std::uint64_t free_bytes) {
  return fmt::format(
      "{}, GPU {}, {} free{}", facts.name, facts.ordinal, format_bytes(free_bytes),
      facts.numa_node < 0 ? "" : fmt::format(", near NUMA node {}", facts.numa_node));
}

}  // namespace

DeviceChoice choose_device(const RunConfig& config, const SeenGpus& seen, int num_host_ranks) {
  if (is_host_asked_for(config)) return {};
  const auto& found = seen.cuda.devices;
  if (found.empty()) return stand_in(config, seen);
  check_one_each(std::ssize(found), num_host_ranks);
  if (config.world > 1 && !seen.nccl.failure.empty())
    throw ConfigError(fmt::format(
        "several ranks on GPUs need NCCL: {}; or set ranks: 1, or device: cpu, which computes on "
        "the host",
        seen.nccl.failure));
  return {{found.begin(), found.begin() + num_host_ranks},
          note_of_unused(config, std::ssize(found), num_host_ranks)};
}

DeviceChoice choose_device_here(const RunConfig& config, int num_host_ranks) {
  if (is_host_asked_for(config)) return {};  // Not even the driver is asked.
  SeenGpus seen{read_gpus(), read_cuda_devices(), {}};
  if (config.world > 1 && !seen.cuda.devices.empty()) seen.nccl = read_nccl();
  return choose_device(config, seen, num_host_ranks);
}

DeviceKind planned_device(const RunConfig& config, const MachineProfile& machine) {
  if (config.kernels == KernelsKind::ref) return DeviceKind::cpu;
  if (config.device != DeviceKind::automatic) return config.device;
  return machine.accelerator.name == host_accelerator_name ? DeviceKind::cpu : DeviceKind::gpu;
}

CudaDeviceOptions rank_device_options(const DeviceChoice& choice, int numa_node, int world) {
  CudaDeviceOptions options;
  options.place_pinned = placer_on_node(numa_node);
  if (world == 1 && choice.on_warning)
    options.on_pageable = [tell = choice.on_warning](const std::string& why) {
      tell(pageable_warning(why));
    };
  return options;
}

std::uint64_t device_workspace_bytes(int world) {
  return cuda::kernels_workspace_bytes + (world > 1 ? nccl_staging_bytes : 0);
}

RankDevice open_rank_device(const DeviceChoice& choice, int host_rank, int world) {
  RankDevice opened;
  if (!choice.uses_gpus()) return opened;
  const CudaDeviceFacts& facts = choice.gpus.at(static_cast<std::size_t>(host_rank));
  opened.device =
      make_cuda_device(facts.ordinal, rank_device_options(choice, facts.numa_node, world));
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
