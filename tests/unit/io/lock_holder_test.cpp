#include "io/store/lock_holder.hpp"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <sstream>

namespace strata::testing {
namespace {

constexpr const char* lines =
    "1: POSIX  ADVISORY  WRITE 700 08:02:131 0 EOF\n"
    "2: FLOCK  ADVISORY  WRITE 701 08:02:131 0 EOF\n"
    "2: -> FLOCK  ADVISORY  WRITE 702 08:02:132 0 EOF\n"
    "3: FLOCK  ADVISORY  WRITE 703 00:2f:131 0 EOF\n"
    "4: FLOCK  ADVISORY  WRITE 704 00:2f:133 0 EOF\n"
    "5: POSIX  ADVISORY  WRITE 705 00:2f:134 0 EOF\n";

LockHolder holder_of(unsigned device_major, unsigned device_minor, ino_t inode) {
  std::istringstream locks(lines);
  return lock_holder(locks, makedev(device_major, device_minor), inode);
}

TEST(LockHolder, IsWhoHasTheFileOfThatDeviceAndInode) {
  EXPECT_EQ(holder_of(8, 2, 131).holder, Holder::somebody);
  EXPECT_EQ(holder_of(8, 2, 131).process, 701);
  EXPECT_EQ(holder_of(0, 0x2f, 131).process, 703) << "though another line has its inode, too";
}

TEST(LockHolder, IsNobodyWhereNoLineHasTheInode) {
  EXPECT_EQ(holder_of(8, 2, 135).holder, Holder::nobody);
  EXPECT_EQ(holder_of(8, 2, 132).holder, Holder::nobody) << "that one only waits";
  EXPECT_EQ(holder_of(8, 2, 134).holder, Holder::nobody) << "that is a lock of another kind";
}

// btrfs and some overlays: stat() gives another device than the kernel's list of locks.
TEST(LockHolder, IsUnknownWhereOnlyTheInodeIsTheSame) {
  EXPECT_EQ(holder_of(8, 2, 133).holder, Holder::unknown);
  EXPECT_EQ(holder_of(8, 3, 131).holder, Holder::unknown);
}

}  // namespace
}  // namespace strata::testing
