#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

#include "measure/doctor_findings.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

constexpr std::uint64_t alignment_max = 4096;  // what tiles and their tails are cut to
constexpr std::uint64_t optimizer_bytes = 12;  // per parameter: fp32 master and two moments

bool is_network(const std::string& file_system) {
  constexpr std::array<std::string_view, 14> names = {
      "nfs",      "nfs4", "cifs", "smb3",      "ceph",   "lustre", "9p",
      "virtiofs", "afs",  "gpfs", "glusterfs", "beegfs", "ocfs2",  "gfs2"};
  return file_system.starts_with("fuse") || std::ranges::find(names, file_system) != names.end();
}

std::string device_text(const DriveFacts& drive) {
  if (drive.disk.empty()) return "no block device";
  return drive.model.empty() ? drive.disk : fmt::format("{} ({})", drive.disk, drive.model);
}

std::string direct_text(const DriveFacts& drive) {
  if (drive.in_memory) return "";
  if (!drive.direct_alignment) return ", direct I/O not told";
  if (*drive.direct_alignment == 0) return ", no direct I/O";
  return fmt::format(", direct I/O at {} bytes", *drive.direct_alignment);
}

std::string queue_text(const DriveFacts& drive) {
  std::string text;
  if (drive.requests_max) text += fmt::format(", {} requests", *drive.requests_max);
  if (drive.request_bytes_max)
    text += fmt::format(" of up to {}", format_bytes(*drive.request_bytes_max));
  if (!drive.scheduler.empty()) text += ", scheduler " + drive.scheduler;
  if (!drive.write_cache.empty()) text += ", cache " + drive.write_cache;
  return text;
}

std::string drive_text(const DriveFacts& drive) {
  std::string text = fmt::format("{}, {} on {}, {} of {} free", device_text(drive),
                                 drive.file_system, drive.mount_point,
                                 format_bytes(drive.free_bytes), format_bytes(drive.total_bytes));
  text += direct_text(drive) + queue_text(drive);
  if (!drive.pcie_link.empty()) text += ", " + drive.pcie_link;
  if (drive.numa_node) text += fmt::format(", node {}", *drive.numa_node);
  return text;
}

void judge_access(Finding& finding, const DirectoryFacts& directory) {
  if (directory.write_error == 0) return;
  worsen(finding, Health::broken,
         fmt::format("{} cannot be written ({}): give this user the right, or name another",
                     directory.examined, std::generic_category().message(directory.write_error)));
}

// Not broken: it will be free again.
void judge_user(Finding& finding, const DirectoryFacts& directory) {
  if (directory.user.empty()) return;
  worsen(finding, Health::degraded,
         fmt::format("in use by a run ({}): another is refused until it ends, and what is free "
                     "here is less its tiles",
                     directory.user));
}

void judge_file_system(Finding& finding, const DriveFacts& drive) {
  if (drive.in_memory)
    worsen(finding, Health::broken,
           fmt::format("{} keeps files in RAM, which the NVMe tier is to save: name a directory on "
                       "a drive, or put these bytes on cpu",
                       drive.file_system));
  if (drive.file_system == "overlay")
    worsen(finding, Health::degraded,
           "a container's own layer (overlay): its drive is hidden, and files may vanish with the "
           "container. Mount a directory of the host (Docker: -v /host/dir:/dir)");
  if (is_network(drive.file_system))
    worsen(finding, Health::degraded,
           fmt::format("{} is no local drive: each step waits for the network or a server, and "
                       "others' traffic. Name a directory on a local NVMe drive",
                       drive.file_system));
}

void judge_direct_io(Finding& finding, const DriveFacts& drive) {
  if (!drive.direct_alignment || drive.in_memory) return;
  if (*drive.direct_alignment == 0)
    worsen(finding, Health::degraded,
           "without direct I/O every byte is copied through the page cache, which costs CPU time "
           "and RAM. ext4 and xfs have it");
  if (*drive.direct_alignment > alignment_max)
    worsen(finding, Health::broken,
           fmt::format("direct I/O must be aligned to {} bytes, Strata aligns to {} for now: use a "
                       "drive with sectors of at most that",
                       *drive.direct_alignment, alignment_max));
}

// Virtual disks call themselves rotational unless told otherwise: it says nothing of the drive.
bool is_virtual(const DriveFacts& drive) {
  return drive.disk.starts_with("vd") || drive.disk.starts_with("xvd") ||
         drive.disk.starts_with("loop") || drive.model.starts_with("QEMU");
}

void judge_disk(Finding& finding, const DriveFacts& drive) {
  if (drive.rotational.value_or(false) && is_virtual(drive))
    finding.facts += "; a virtual disk, of which `strata bench nvme` tells what it can do";
  else if (drive.rotational.value_or(false))
    worsen(finding, Health::degraded,
           "a hard disk moves some 0.2 GB/s, an NVMe drive several: the steps wait for it");
  if (drive.model.starts_with("dm-crypt"))
    worsen(finding, Health::degraded,
           "every byte is encrypted or decrypted by the CPU: an unencrypted drive spares that");
}

std::string room_text(std::uint64_t free_bytes) {
  const double parameters = static_cast<double>(free_bytes / optimizer_bytes);
  return parameters < 1e9 ? fmt::format("{:.0f}M", parameters / 1e6)
                          : fmt::format("{:.3g}B", parameters / 1e9);
}

void judge_space(Finding& finding, const DriveFacts& drive) {
  if (drive.in_memory) return;
  finding.facts +=
      fmt::format("; room for the optimizer state of {} parameters", room_text(drive.free_bytes));
  if (drive.free_bytes < GiB)
    worsen(finding, Health::broken, "less than 1 GiB is free: free some space, or name another");
  else if (drive.free_bytes < 16 * GiB)
    worsen(finding, Health::degraded,
           "little room: optimizer state takes 12 bytes per parameter, 84 GB for 7B parameters");
}

// The first path before this one that shares its disk, or its mount when the disk is hidden.
const DirectoryFacts* earlier_on_same_disk(const DoctorFacts& facts, std::size_t index) {
  const DriveFacts& drive = facts.drives[index].drive;
  for (std::size_t i = 0; i < index; ++i) {
    const DriveFacts& other = facts.drives[i].drive;
    if (!facts.drives[i].failure.empty() || other.disk != drive.disk) continue;
    if (!drive.disk.empty() || other.mount_point == drive.mount_point) return &facts.drives[i];
  }
  return nullptr;
}

void judge_sharing(Finding& finding, const DoctorFacts& facts, std::size_t index) {
  const DirectoryFacts* other = earlier_on_same_disk(facts, index);
  if (other == nullptr) return;
  worsen(finding, Health::degraded,
         fmt::format("on the same disk as {}: two paths of one disk are no faster than one. Leave "
                     "one out, or name a directory on another drive",
                     other->path));
}

}  // namespace

Finding find_drive(const DoctorFacts& facts, std::size_t index) {
  const DirectoryFacts& directory = facts.drives[index];
  Finding finding{"drive " + directory.path, Health::ok, directory.failure, ""};
  if (!directory.failure.empty()) {
    worsen(finding, Health::broken, "create the directory, or name another in nvme_paths");
    return finding;
  }
  finding.facts = drive_text(directory.drive);
  judge_access(finding, directory);
  judge_user(finding, directory);
  judge_file_system(finding, directory.drive);
  judge_direct_io(finding, directory.drive);
  judge_disk(finding, directory.drive);
  judge_space(finding, directory.drive);
  judge_sharing(finding, facts, index);
  return finding;
}

Finding find_output(const DirectoryFacts& output) {
  Finding finding{"output " + output.path, Health::ok, output.failure, ""};
  if (!output.failure.empty()) {
    worsen(finding, Health::broken, "name a directory that can be made, as output_dir");
    return finding;
  }
  const DriveFacts& drive = output.drive;
  finding.facts = fmt::format("{} on {}, {} of {} free", drive.file_system, drive.mount_point,
                              format_bytes(drive.free_bytes), format_bytes(drive.total_bytes));
  judge_access(finding, output);
  if (drive.in_memory)
    worsen(finding, Health::degraded,
           "in RAM: it takes memory from the run and is lost when the machine stops");
  if (drive.free_bytes < GiB)
    worsen(finding, Health::broken,
           "less than 1 GiB is free: the exported weights take 2 bytes per parameter");
  return finding;
}

}  // namespace strata
