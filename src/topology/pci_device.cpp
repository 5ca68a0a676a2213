#include "topology/pci_device.hpp"

#include "topology/system_files.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

// The nearest folder, from `device` up, that has this file; empty: none.
fs::path nearest_with(fs::path device, const char* file) {
  std::error_code ignored;
  for (; device.has_relative_path(); device = device.parent_path()) {
    if (fs::exists(device / file, ignored)) return device;
  }
  return {};
}

}  // namespace

std::string pcie_link_above(const fs::path& device) {
  const fs::path found = nearest_with(device, "current_link_width");
  if (found.empty()) return "";
  const std::string speed = read_system_line(found / "current_link_speed");
  const std::string width = read_system_line(found / "current_link_width");
  if (speed.empty() || speed.starts_with("Unknown") || width.empty() || width == "0") return "";
  return speed + " x" + width;
}

std::optional<int> numa_node_above(const fs::path& device) {
  const fs::path found = nearest_with(device, "numa_node");
  if (found.empty()) return std::nullopt;
  const auto node = read_system_count(found / "numa_node");  // -1: the firmware does not say
  if (!node) return std::nullopt;
  return static_cast<int>(*node);
}

}  // namespace strata
