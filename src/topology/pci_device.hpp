#pragma once
// Where a device hangs in the machine: found on the way up from its folder in /sys/devices.

#include <filesystem>
#include <optional>
#include <string>

namespace strata {

// "16.0 GT/s PCIe x4", as the link runs now; empty: not on PCIe, or hidden by a virtual machine.
std::string pcie_link_above(const std::filesystem::path& device);
std::optional<int> numa_node_above(const std::filesystem::path& device);

}  // namespace strata
