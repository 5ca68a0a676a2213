#pragma once
// A LoopDrive is a drive of our own making: an ext4 file system on a loop device with sectors of a
// chosen size. It is mounted in a mount namespace of the calling thread, so that whatever becomes
// of the test, nothing is left behind.
//
// Thread contract: made and used by a thread that ends with it (see on_loop_drive); engines made by
// that thread see it too.

#include <cstdint>
#include <functional>
#include <string>

#include "contract/io/io_testing.hpp"

namespace strata::testing {

class LoopDrive {
 public:
  LoopDrive(std::uint64_t sector_bytes, std::uint64_t bytes);  // Throws SystemError.
  ~LoopDrive();
  LoopDrive(const LoopDrive&) = delete;
  LoopDrive& operator=(const LoopDrive&) = delete;

  const std::string& path() const { return mount_point_; }
  std::string file(const std::string& name) const { return mount_point_ + "/" + name; }
  // The drive becomes this small: transfers to what is beyond fail with EIO.
  void shrink(std::uint64_t bytes);

 private:
  void attach(std::uint64_t sector_bytes);
  void mount();

  TempDirectory directory_;
  const std::string image_;
  const std::string mount_point_;
  std::string device_;
  int device_descriptor_ = -1;
  bool mounted_ = false;
};

// Runs `body` on such a drive, in a thread of its own. Returns why there can be none here, or "".
std::string on_loop_drive(std::uint64_t sector_bytes, std::uint64_t bytes,
                          const std::function<void(LoopDrive&)>& body);

}  // namespace strata::testing
