#include "support/loop_drive.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr unsigned long shut_down = 0x8004587d;  // FS_IOC_SHUTDOWN, which no header of libc has
constexpr unsigned without_flushing = 2;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

long check(long result, const std::string& what) {
  if (result < 0) fail(what);
  return result;
}

// A descriptor for as long as a block lasts.
struct Opened {
  Opened(const std::string& path, int flags)
      : descriptor(static_cast<int>(
            check(::open(path.c_str(), flags | O_CLOEXEC, 0600), "cannot open " + path))) {}
  ~Opened() { ::close(descriptor); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  const int descriptor;
};

bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

bool control(const fs::path& mount, unsigned long request, unsigned argument) {
  const Opened directory(mount, O_RDONLY | O_DIRECTORY);
  return ::ioctl(directory.descriptor, request, &argument) == 0;
}

void leave_mounts_of_others() {
  check(::unshare(CLONE_NEWNS), "no mount namespace");
  check(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "no private mounts");
}

std::string device_path(int descriptor) {
  return fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor));
}

}  // namespace

LoopDrive::LoopDrive(const fs::path& folder, std::uint64_t bytes, std::uint64_t bytes_below,
                     std::uint64_t sector_bytes, const std::string& file_system)
    : below_(folder / "below"), mount_(folder / "drive"), image_(below_ / "image") {
  fs::create_directories(below_);
  fs::create_directories(mount_);
  try {
    leave_mounts_of_others();
    const std::string size = "size=" + std::to_string(bytes_below);
    check(::mount("none", below_.c_str(), "tmpfs", 0, size.c_str()), "no tmpfs");
    below_mounted_ = true;
    attach(bytes, sector_bytes);
    mount_drive(file_system);
  } catch (const std::system_error& error) {
    why_not_ = error.what();
  }
}

LoopDrive::~LoopDrive() {
  if (drive_mounted_) thaw();  // A frozen file system cannot be unmounted.
  if (drive_mounted_) ::umount2(mount_.c_str(), MNT_DETACH);
  if (device_ >= 0) ::close(device_);
  if (below_mounted_) ::umount2(below_.c_str(), MNT_DETACH);
}

void LoopDrive::attach(std::uint64_t bytes, std::uint64_t sector_bytes) {
  const Opened loops("/dev/loop-control", O_RDWR);
  const Opened image(image_, O_RDWR | O_CREAT);
  check(::ftruncate(image.descriptor, static_cast<off_t>(bytes)), "cannot make " + image_);
  loop_config config = {};
  config.fd = static_cast<unsigned>(image.descriptor);
  config.block_size = static_cast<unsigned>(sector_bytes);
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
  for (int attempt = 0; attempt < 10; ++attempt) {  // another process may take the free one first
    const long number = check(::ioctl(loops.descriptor, LOOP_CTL_GET_FREE), "no loop device");
    const std::string path = "/dev/loop" + std::to_string(number);
    device_ =
        static_cast<int>(check(::open(path.c_str(), O_RDWR | O_CLOEXEC), "cannot open " + path));
    if (::ioctl(device_, LOOP_CONFIGURE, &config) == 0) return;
    const int error_number = errno;
    ::close(std::exchange(device_, -1));
    errno = error_number;
    if (error_number != EBUSY) break;
  }
  fail("cannot set up a loop device");
}

void LoopDrive::mount_drive(const std::string& file_system) {
  const std::string device = device_path(device_);
  const std::string make = "mkfs." + file_system;
  if (!run(make + " -q -F -b 4096 -m 0 " + device))
    throw std::system_error(ENOEXEC, std::generic_category(), make + " failed");
  check(::mount(device.c_str(), mount_.c_str(), file_system.c_str(), 0, nullptr),
        "cannot mount " + device + " as " + file_system);
  drive_mounted_ = true;
}

// Frozen meanwhile: a write in between would get its blocks back before they are taken.
void LoopDrive::fill_below() const {
  freeze();
  const std::string rest = "-o 1M -l " + std::to_string(fs::file_size(image_) - (1 << 20));
  const bool punched = run("fallocate --punch-hole " + rest + " '" + image_ + "'");
  run("dd if=/dev/zero of='" + (below_ / "ballast").string() + "' bs=1M");  // until it is full
  thaw();
  if (!punched) throw std::runtime_error("cannot punch a hole into " + image_);
}

void LoopDrive::shrink(std::uint64_t bytes) const {
  fs::resize_file(image_, bytes);
  check(::ioctl(device_, LOOP_SET_CAPACITY), "cannot shrink " + device_path(device_));
}

void LoopDrive::freeze() const {
  if (!control(mount_, FIFREEZE, 0)) fail("cannot freeze " + mount_.string());
}

void LoopDrive::thaw() const { control(mount_, FITHAW, 0); }

void LoopDrive::die() const {
  if (!control(mount_, shut_down, without_flushing)) fail("cannot shut down " + mount_.string());
}

}  // namespace strata
