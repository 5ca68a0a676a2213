#pragma once
// A LoopDrive is a small drive of a test's own: an ext4 (or other) file system on a loop device
// over a file on another small file system. Its sectors have the size asked for; it can fill up
// underneath, become smaller, stop answering and die. Needs root and loop devices: why_not() says
// what is missing.
//
// Thread contract: the thread that makes it moves into a mount namespace of its own and stays
// there. What that thread starts from then on, threads and processes, sees the drive; nobody else
// does, so that nothing is left behind however the test ends.

#include <cstdint>
#include <filesystem>
#include <string>

namespace strata {

class LoopDrive {
 public:
  // Below `folder`. The file system underneath has `bytes_below`, the drive appears to have
  // `bytes`.
  LoopDrive(const std::filesystem::path& folder, std::uint64_t bytes, std::uint64_t bytes_below,
            std::uint64_t sector_bytes = 512, const std::string& file_system = "ext4");
  ~LoopDrive();
  LoopDrive(const LoopDrive&) = delete;
  LoopDrive& operator=(const LoopDrive&) = delete;

  const std::string& why_not() const { return why_not_; }  // empty: the drive is there
  const std::filesystem::path& path() const { return mount_; }
  std::string file(const std::string& name) const { return mount_ / name; }
  // Gives back what the drive's blocks hold and takes all space underneath: no write succeeds.
  void fill_below() const;
  // The device ends here: transfers to what lies beyond fail with EIO.
  void shrink(std::uint64_t bytes) const;
  // Until thaw() no write ends.
  void freeze() const;
  void thaw() const;
  // From now on every transfer fails.
  void die() const;

 private:
  void attach(std::uint64_t bytes, std::uint64_t sector_bytes);
  void mount_drive(const std::string& file_system);

  std::filesystem::path below_, mount_;
  std::string image_, why_not_;
  int device_ = -1;  // descriptor; the device goes with its last user
  bool below_mounted_ = false, drive_mounted_ = false;
};

}  // namespace strata
