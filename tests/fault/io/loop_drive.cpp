#include "fault/io/loop_drive.hpp"

#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <thread>

#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

// A descriptor for as long as a block lasts.
struct Opened {
  Opened(const std::string& path, int flags)
      : descriptor(
            static_cast<int>(check(::open(path.c_str(), flags | O_CLOEXEC, 0600), "open", path))) {}
  ~Opened() { ::close(descriptor); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  const int descriptor;
};

}  // namespace

LoopDrive::LoopDrive(std::uint64_t sector_bytes, std::uint64_t bytes)
    : image_(directory_.file("image")), mount_point_(directory_.file("drive")) {
  check(::mkdir(mount_point_.c_str(), 0755), "make directory", mount_point_);
  {
    const Opened image(image_, O_RDWR | O_CREAT);
    check(::ftruncate(image.descriptor, static_cast<off_t>(bytes)), "make", image_);
  }
  try {
    attach(sector_bytes);
    mount();
  } catch (...) {
    if (device_descriptor_ >= 0) ::close(device_descriptor_);
    throw;
  }
}

LoopDrive::~LoopDrive() {
  if (mounted_) ::umount2(mount_point_.c_str(), MNT_DETACH);
  ::close(device_descriptor_);
}

void LoopDrive::attach(std::uint64_t sector_bytes) {
  const Opened control("/dev/loop-control", O_RDWR);
  const Opened image(image_, O_RDWR);
  loop_config config = {};
  config.fd = static_cast<unsigned>(image.descriptor);
  config.block_size = static_cast<unsigned>(sector_bytes);
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR;        // detached with its last user
  for (int attempt = 0; attempt < 10; ++attempt) {  // another process may take the free one first
    const long number =
        check(::ioctl(control.descriptor, LOOP_CTL_GET_FREE), "get", "a loop device");
    device_ = "/dev/loop" + std::to_string(number);
    device_descriptor_ =
        static_cast<int>(check(::open(device_.c_str(), O_RDWR | O_CLOEXEC), "open", device_));
    if (::ioctl(device_descriptor_, LOOP_CONFIGURE, &config) == 0) return;
    const int error_number = errno;
    ::close(std::exchange(device_descriptor_, -1));
    if (error_number != EBUSY) throw SystemError("set up", device_, error_number);
  }
  throw SystemError("set up", "a loop device", EBUSY);
}

void LoopDrive::mount() {
  const std::string command = "mkfs.ext4 -q -F -b 4096 -m 0 " + device_ + " >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0) throw SystemError("run", "mkfs.ext4", ENOENT);
  check(::unshare(CLONE_NEWNS), "make", "a mount namespace");
  check(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "keep to itself",
        "the namespace");
  check(::mount(device_.c_str(), mount_point_.c_str(), "ext4", 0, nullptr), "mount", device_);
  mounted_ = true;
}

void LoopDrive::shrink(std::uint64_t bytes) {
  check(::truncate(image_.c_str(), static_cast<off_t>(bytes)), "shrink", image_);
  check(::ioctl(device_descriptor_, LOOP_SET_CAPACITY), "shrink", device_);
}

std::string on_loop_drive(std::uint64_t sector_bytes, std::uint64_t bytes,
                          const std::function<void(LoopDrive&)>& body) {
  if (::geteuid() != 0) return "only root may set up loop devices";
  std::string reason;
  std::thread thread([&] {
    std::unique_ptr<LoopDrive> drive;
    try {
      drive = std::make_unique<LoopDrive>(sector_bytes, bytes);
    } catch (const SystemError& error) {
      reason = error.what();
    }
    if (drive != nullptr) body(*drive);
  });
  thread.join();
  return reason;
}

}  // namespace strata::testing
