#include "topology/drive_description.hpp"

#include "topology/block_device.hpp"
#include "topology/mount_table.hpp"

namespace strata {

DriveFacts describe_drive(const std::string& path, std::optional<std::uint64_t> mount_id,
                          const SystemRoots& roots) {
  DriveFacts facts;
  facts.path = path;
  const auto mounts = parse_mounts(read_system_file(roots.proc / "self/mountinfo"));
  const Mount* mount = find_mount(mounts, path, mount_id);
  if (mount == nullptr) return facts;
  facts.mount_point = mount->mount_point;
  facts.file_system = mount->file_system;
  facts.mount_options = mount->options;
  const std::filesystem::path device = find_block_device(*mount, roots);
  if (!device.empty()) describe_block_device(facts, device);
  return facts;
}

}  // namespace strata
