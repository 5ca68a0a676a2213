#pragma once
// A LoopDrive is a small drive of its own: an ext4 file system on a loop device over a file on
// another small file system. It can fill up underneath, and it can die. Needs root and loop
// devices: why_not() says what is missing. All of it is mounted where only this process and its
// children see it, so that nothing is left behind however the process ends.

#include <cstdint>
#include <filesystem>
#include <string>

namespace strata {

class LoopDrive {
 public:
  // Below `folder`. The file system underneath has `bytes_below`, the drive appears to have
  // `bytes`.
  LoopDrive(const std::filesystem::path& folder, std::uint64_t bytes, std::uint64_t bytes_below);
  ~LoopDrive();
  LoopDrive(const LoopDrive&) = delete;
  LoopDrive& operator=(const LoopDrive&) = delete;

  const std::string& why_not() const { return why_not_; }  // empty: the drive is there
  std::filesystem::path path() const { return mount_; }
  // Gives back what the drive's blocks hold and takes all space underneath: no write succeeds.
  void fill_below() const;
  // From now on every transfer fails.
  void die() const;
  // Until thaw() no write ends.
  void freeze() const;
  void thaw() const;

 private:
  bool mount_below(std::uint64_t bytes);
  bool mount_drive(std::uint64_t bytes);

  std::filesystem::path below_, mount_;
  std::string why_not_;
  bool below_mounted_ = false, drive_mounted_ = false;
};

}  // namespace strata
