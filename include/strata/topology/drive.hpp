#pragma once
// What the system knows of the drive and file system behind a directory. Read from statx, statfs,
// /proc/self/mountinfo and /sys; what it cannot tell stays empty or unknown. A value.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace strata {

struct DriveFacts {
  std::string path;                                     // the directory asked about
  std::string mount_point, file_system, mount_options;  // "ext4", "rw,relatime"
  std::uint64_t total_bytes = 0, free_bytes = 0;
  bool in_memory = false;  // tmpfs and its kind

  std::string device;  // "/dev/nvme0n1p2"; empty: no block device (overlay, network)
  std::string disk;    // the whole disk: "nvme0n1"
  std::string model;   // "Samsung SSD 990 PRO 2TB"
  std::optional<bool> rotational;
  std::optional<std::uint64_t> logical_sector_bytes, physical_sector_bytes;
  std::optional<std::uint64_t> requests_max;       // queue/nr_requests
  std::optional<std::uint64_t> request_bytes_max;  // queue/max_sectors_kb
  std::string scheduler, write_cache;              // "none"; "write back"
  std::optional<int> numa_node;
  std::string pcie_link;  // "16.0 GT/s PCIe x4"
  // Offset and memory alignment of direct I/O, by statx on a file there; 0: none; nothing: unknown.
  std::optional<std::uint64_t> direct_alignment;
};

// The first directory that one before it names too, in whatever spelling; nothing: none does.
std::optional<std::string> named_twice(const std::vector<std::string>& directories);

// Throws SystemError when `directory` cannot be looked at. Creates nothing.
DriveFacts read_drive_facts(const std::string& directory);

}  // namespace strata
