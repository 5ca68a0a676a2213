#include "topology/block_device.hpp"

#include <fmt/format.h>

#include <optional>

#include "strata/core/bytes.hpp"
#include "topology/pci_device.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

fs::path existing(const fs::path& path) {
  std::error_code failed;
  const fs::path found = fs::canonical(path, failed);
  return failed ? fs::path() : found;
}

// The kernel's name of "/dev/mapper/vg-data" is where the link leads: "dm-0".
std::string kernel_name(const std::string& source) {
  std::error_code failed;
  const fs::path target = fs::canonical(source, failed);
  return (failed ? fs::path(source) : target).filename();
}

// Disks of several drives, or of one behind a cipher, have no model: how they are made says more.
std::string mapped_model(const fs::path& disk) {
  const std::string level = read_system_line(disk / "md/level");
  if (!level.empty()) return "md " + level;
  const std::string name = read_system_line(disk / "dm/name");
  if (name.empty()) return "";
  const std::string id = read_system_line(disk / "dm/uuid");
  if (id.starts_with("CRYPT-")) return "dm-crypt " + name;
  return (id.starts_with("LVM-") ? "LVM " : "device mapper ") + name;
}

std::string model_of(const fs::path& disk) {
  const std::string model = read_system_line(disk / "device/model");
  return model.empty() ? mapped_model(disk) : model;
}

// "mq-deadline [none]"; a device without a choice shows the one name.
std::string chosen_scheduler(const std::string& text) {
  const std::string chosen = bracketed(text);
  return chosen.empty() ? text : chosen;
}

// An NVMe drive of several paths is a virtual device: the first of its controllers has the link.
fs::path hardware_of(const fs::path& disk) {
  const fs::path device = existing(disk / "device");
  if (!device.filename().string().starts_with("nvme-subsys")) return device;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(device, ignored)) {
    const bool is_controller = fs::is_symlink(entry.symlink_status(ignored)) &&
                               entry.path().filename().string().starts_with("nvme");
    if (is_controller) return existing(entry.path());
  }
  return device;
}

void describe_queue(DriveFacts& facts, const fs::path& queue) {
  if (const auto rotational = read_system_count(queue / "rotational"))
    facts.rotational = *rotational != 0;
  facts.logical_sector_bytes = read_system_count(queue / "logical_block_size");
  facts.physical_sector_bytes = read_system_count(queue / "physical_block_size");
  facts.requests_max = read_system_count(queue / "nr_requests");
  if (const auto kib = read_system_count(queue / "max_sectors_kb"))
    facts.request_bytes_max = *kib * KiB;
  facts.scheduler = chosen_scheduler(read_system_line(queue / "scheduler"));
  facts.write_cache = read_system_line(queue / "write_cache");
}

}  // namespace

fs::path find_block_device(const Mount& mount, const SystemRoots& roots) {
  const fs::path by_number = existing(roots.sys / "dev/block" / mount.device);
  if (!by_number.empty() || !mount.source.starts_with("/dev/")) return by_number;
  // btrfs gives each subvolume a number of its own.
  return existing(roots.sys / "class/block" / kernel_name(mount.source));
}

void describe_block_device(DriveFacts& facts, const fs::path& device) {
  std::error_code ignored;
  const bool is_partition = fs::exists(device / "partition", ignored);
  const fs::path disk = is_partition ? device.parent_path() : device;
  facts.device = "/dev/" + device.filename().string();
  facts.disk = disk.filename();
  facts.model = model_of(disk);
  describe_queue(facts, disk / "queue");
  const fs::path hardware = hardware_of(disk);
  facts.numa_node = numa_node_above(hardware);
  facts.pcie_link = pcie_link_above(hardware);
}

}  // namespace strata
