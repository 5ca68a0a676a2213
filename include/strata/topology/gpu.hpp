#pragma once
// The NVIDIA GPUs of this machine and their driver, by the kernel's own account: whether a build of
// Strata can use them is another question (num_cuda_devices()). A value.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace strata {

struct GpuFacts {
  std::string pci_address;  // "0000:41:00.0"
  std::string name;         // "NVIDIA H100 80GB HBM3"; empty: the driver is not there to tell
  std::string driver;       // bound to it: "nvidia", "nouveau", "vfio-pci"; empty: none
  std::optional<int> numa_node;
  std::string pcie_link;  // "32.0 GT/s PCIe x16"; a GPU at rest may show less than it can do
};

struct GpuInventory {
  std::string driver_version;  // "570.86.15"; empty: no driver
  std::vector<GpuFacts> gpus;  // by address
};

GpuInventory read_gpus();

// How many are this system's: not those bound to vfio-pci, which are lent to virtual machines.
std::size_t num_own_gpus(const GpuInventory& inventory);

}  // namespace strata
