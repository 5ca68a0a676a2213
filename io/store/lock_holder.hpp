#pragma once
// Who holds the lock of a file, without asking for it: from /proc/locks, which tells of the
// processes that this one can see. Its lines name a file by device and inode, and on some file
// systems (btrfs, overlays) by another device than stat() does: where only the inode is the same,
// the holder is unknown.

#include <sys/types.h>

#include <cstdint>
#include <istream>
#include <string>

namespace strata {

enum class Holder : std::uint8_t { nobody, somebody, unknown };
struct LockHolder {
  Holder holder = Holder::unknown;
  long process = 0;  // of `somebody`; 0: in another container
};
LockHolder lock_holder(const std::string& path);
// From the lines of /proc/locks.
LockHolder lock_holder(std::istream& locks, dev_t device, ino_t inode);

}  // namespace strata
