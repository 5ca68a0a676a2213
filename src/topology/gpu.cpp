#include "strata/topology/gpu.hpp"

#include <algorithm>
#include <cctype>

#include "topology/gpu_files.hpp"
#include "topology/pci_device.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

// Display controllers of NVIDIA: VGA (0x0300..) and 3D (0x0302..).
bool is_gpu(const fs::path& device) {
  return read_system_line(device / "vendor") == "0x10de" &&
         read_system_line(device / "class").starts_with("0x03");
}

std::string link_target_name(const fs::path& link) {
  std::error_code failed;
  const fs::path target = fs::read_symlink(link, failed);
  return failed ? "" : target.filename().string();
}

GpuFacts read_gpu(const fs::path& device, const SystemRoots& roots) {
  GpuFacts gpu;
  gpu.pci_address = device.filename();
  gpu.driver = link_target_name(device / "driver");
  const fs::path folder = roots.proc / "driver/nvidia/gpus" / gpu.pci_address;
  gpu.name = field_of(read_system_file(folder / "information"), "Model:");
  std::error_code failed;
  const fs::path place = fs::canonical(device, failed);
  if (failed) return gpu;
  gpu.numa_node = numa_node_above(place);
  gpu.pcie_link = pcie_link_above(place);
  return gpu;
}

bool is_version(const std::string& word) {
  return word.find('.') != std::string::npos && std::ranges::all_of(word, [](unsigned char c) {
           return std::isdigit(c) != 0 || c == '.';
         });
}

// "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build"
std::string parse_driver_version(const std::string& text) {
  const auto words = words_of(field_of(text, "NVRM version:"));
  const auto found = std::ranges::find_if(words, is_version);
  return found == words.end() ? "" : *found;
}

}  // namespace

GpuInventory read_gpus(const SystemRoots& roots) {
  GpuInventory inventory;
  inventory.driver_version =
      parse_driver_version(read_system_file(roots.proc / "driver/nvidia/version"));
  std::error_code failed;
  for (fs::directory_iterator entry(roots.sys / "bus/pci/devices", failed), end;
       !failed && entry != end; entry.increment(failed)) {
    if (is_gpu(entry->path())) inventory.gpus.push_back(read_gpu(entry->path(), roots));
  }
  std::ranges::sort(inventory.gpus, {}, &GpuFacts::pci_address);
  return inventory;
}

std::size_t num_own_gpus(const GpuInventory& inventory) {
  return static_cast<std::size_t>(std::ranges::count_if(
      inventory.gpus, [](const GpuFacts& gpu) { return gpu.driver != "vfio-pci"; }));
}

GpuInventory read_gpus() { return read_gpus(SystemRoots{}); }

}  // namespace strata
