#pragma once
// What the ranks of a run compute on: GPUs, or the host standing in for one. Which of them, and
// what a GPU offers a run, is said here and nowhere else. Thread contract: the main thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strata/comm/nccl.hpp"
#include "strata/device/cuda_devices.hpp"
#include "strata/device/device.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/plan/machine.hpp"
#include "strata/topology/gpu.hpp"
#include "strata/train/run_config.hpp"

namespace strata {

// What a host is seen to have, by the kernel and by CUDA.
struct SeenGpus {
  GpuInventory kernel;
  CudaInventory cuda;
  NcclFacts nccl;  // asked for several ranks on GPUs
};

// What all ranks of a host compute on.
struct DeviceChoice {
  std::vector<CudaDeviceFacts> gpus;  // by host rank; empty: the host stands in for them
  std::string note;  // "1 of 8 GPUs is used; ranks: 8 uses all"; empty: nothing to tell
  // Told of what costs speed later, by the rank's thread. Empty: that is an error then.
  std::function<void(const std::string& text)> on_warning = {};
  bool uses_gpus() const { return !gpus.empty(); }
};
// For `num_host_ranks` of config.world ranks. Throws ConfigError when the config asks for GPUs that
// are not there, or cannot exchange what several ranks hold; where there are fewer than ranks; and
// when the config leaves it open, but there are GPUs with NVIDIA's driver that cannot be used: a run
// on the host would be slow, and nobody has asked for it. It is told, and done, where the build is
// without CUDA or another driver has the GPUs, as on a machine that nobody has set up for CUDA; and
// GPUs that CUDA_VISIBLE_DEVICES hides are not meant to be used.
DeviceChoice choose_device(const RunConfig& config, const SeenGpus& seen, int num_host_ranks);
// Of this machine.
DeviceChoice choose_device_here(const RunConfig& config, int num_host_ranks);
// Of a machine known by its numbers: gpu or cpu.
DeviceKind planned_device(const RunConfig& config, const MachineProfile& machine);

// How a rank's GPU is opened. One rank's host memory may stay pageable, with a warning; that of
// several may not, for NCCL reaches into it.
CudaDeviceOptions rank_device_options(const DeviceChoice& choice, int numa_node, int world);

// Of each GPU's memory, beside the plan's tier: what its kernels work in and, for several ranks,
// what sums over them are staged in.
std::uint64_t device_workspace_bytes(int world);

// One rank's GPU and its workspace. Without a device the host stands in for one. Given back in the
// order kernels, workspace, device; what carries between ranks may hold the device for longer.
struct RankDevice {
  std::shared_ptr<Device> device;
  Slab workspace;
  std::span<std::byte> staging;  // of the workspace; empty: one rank
  std::unique_ptr<Kernels> kernels;
  DeviceSum sum;                // over ranks; empty: one rank
  std::string description;      // "NVIDIA H200, GPU 0, 138.9 GiB free, near NUMA node 0"
  std::vector<int> near_nodes;  // the NUMA node near the GPU of each rank of this host; -1: unknown
};
// Takes the GPU: its context, and its workspace. Nothing where the host stands in.
RankDevice open_rank_device(const DeviceChoice& choice, int host_rank, int world);

// What a tier on GPUs with so much free beside the workspace may be, on the one that gives the
// least: what is free but for device_reserve_bytes(), and no more than offload.gpu_limit without
// the workspace. Throws ConfigError when the limit leaves nothing.
std::uint64_t device_limit(const RunConfig& config, std::span<const std::uint64_t> free_bytes);
// Left to the driver, which loads kernels as they are first used: 1 GiB, of small GPUs a 16th. For
// several ranks four times as much more, which NCCL takes as it connects each with all others:
// 4.3 GB was reported for 8 GPUs that send to each other (github.com/NVIDIA/nccl/issues/1685).
std::uint64_t device_reserve_bytes(std::uint64_t free_bytes, int world);

}  // namespace strata
