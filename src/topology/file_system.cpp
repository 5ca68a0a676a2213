#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/statfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"

namespace strata {
namespace {

enum class Home : std::uint8_t { drive, memory };
struct Kind {
  std::uint32_t magic;
  std::string_view name;
  Home home = Home::drive;
};
constexpr std::uint32_t xfs_magic = 0x58465342, zfs_magic = 0x2fc12fc1, lustre_magic = 0x0bd00bd0;
constexpr std::uint32_t bcachefs_magic = 0xca451a4e, ntfs3_magic = 0x7366746e;
constexpr std::array kinds = {
    Kind{EXT4_SUPER_MAGIC, "ext4"},
    Kind{xfs_magic, "xfs"},
    Kind{BTRFS_SUPER_MAGIC, "btrfs"},
    Kind{F2FS_SUPER_MAGIC, "f2fs"},
    Kind{zfs_magic, "zfs"},
    Kind{bcachefs_magic, "bcachefs"},
    Kind{ntfs3_magic, "ntfs3"},
    Kind{OVERLAYFS_SUPER_MAGIC, "overlay"},
    Kind{NFS_SUPER_MAGIC, "nfs"},
    Kind{CIFS_SUPER_MAGIC, "cifs"},
    Kind{FUSE_SUPER_MAGIC, "fuse"},
    Kind{CEPH_SUPER_MAGIC, "ceph"},
    Kind{lustre_magic, "lustre"},
    Kind{V9FS_MAGIC, "9p"},
    Kind{TMPFS_MAGIC, "tmpfs", Home::memory},
    Kind{RAMFS_MAGIC, "ramfs", Home::memory},
    Kind{HUGETLBFS_MAGIC, "hugetlbfs", Home::memory},
};

Kind kind_of(std::uint32_t magic) {
  const auto kind = std::ranges::find(kinds, magic, &Kind::magic);
  return kind == kinds.end() ? Kind{magic, ""} : *kind;
}

}  // namespace

FileSystemInfo read_file_system(const std::string& directory) {
  struct statfs system = {};
  long result = -1;
  do {
    result = ::statfs(directory.c_str(), &system);
  } while (result != 0 && errno == EINTR);
  check(result, "read the file system of", directory);
  const auto magic = static_cast<std::uint32_t>(system.f_type);
  const Kind kind = kind_of(magic);
  const auto block = static_cast<std::uint64_t>(system.f_bsize);
  return {kind.name.empty() ? fmt::format("unknown ({:#x})", magic) : std::string(kind.name),
          kind.home == Home::memory, system.f_bavail * block, system.f_blocks * block};
}

}  // namespace strata
