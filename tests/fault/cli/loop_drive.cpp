#include "fault/cli/loop_drive.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr unsigned long shut_down = 0x8004587d;  // FS_IOC_SHUTDOWN, which no header of libc has
constexpr unsigned without_flushing = 2;

bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

bool control(const fs::path& mount, unsigned long request, unsigned argument) {
  const int descriptor = ::open(mount.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool done = ::ioctl(descriptor, request, &argument) == 0;
  ::close(descriptor);
  return done;
}

bool leave_mounts_of_others() {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

}  // namespace

LoopDrive::LoopDrive(const fs::path& folder, std::uint64_t bytes, std::uint64_t bytes_below)
    : below_(folder / "below"), mount_(folder / "drive") {
  fs::create_directories(below_);
  fs::create_directories(mount_);
  if (::geteuid() != 0)
    why_not_ = "not root";
  else if (!leave_mounts_of_others())
    why_not_ = "no mount namespace";
  else if (!mount_below(bytes_below))
    why_not_ = "no tmpfs";
  else if (!mount_drive(bytes))
    why_not_ = "no loop device or no ext4";
}

LoopDrive::~LoopDrive() {
  if (drive_mounted_) thaw();  // A frozen file system cannot be unmounted.
  if (drive_mounted_) ::umount2(mount_.c_str(), MNT_DETACH);
  if (below_mounted_) ::umount2(below_.c_str(), MNT_DETACH);
}

bool LoopDrive::mount_below(std::uint64_t bytes) {
  const std::string size = "size=" + std::to_string(bytes);
  below_mounted_ = ::mount("none", below_.c_str(), "tmpfs", 0, size.c_str()) == 0;
  return below_mounted_;
}

bool LoopDrive::mount_drive(std::uint64_t bytes) {
  const std::string image = below_ / "image";
  drive_mounted_ = run("truncate -s " + std::to_string(bytes) + " '" + image + "'") &&
                   run("mkfs.ext4 -q -F -m 0 '" + image + "'") &&
                   run("mount -o loop '" + image + "' '" + mount_.string() + "'");
  return drive_mounted_;
}

void LoopDrive::fill_below() const {
  const std::string image = below_ / "image", ballast = below_ / "ballast";
  ::sync();
  const std::string rest = "-o 16M -l " + std::to_string(fs::file_size(image) - (16 << 20));
  if (!run("fallocate --punch-hole " + rest + " '" + image + "'"))
    throw std::runtime_error("cannot punch a hole into " + image);
  run("dd if=/dev/zero of='" + ballast + "' bs=1M");  // until there is no space
}

void LoopDrive::die() const {
  if (!control(mount_, shut_down, without_flushing))
    throw std::runtime_error("cannot shut down " + mount_.string());
}

void LoopDrive::freeze() const {
  if (!control(mount_, FIFREEZE, 0)) throw std::runtime_error("cannot freeze " + mount_.string());
}

void LoopDrive::thaw() const { control(mount_, FITHAW, 0); }

}  // namespace strata
