#pragma once
// Who holds the lock of a file, without asking for it: from /proc/locks, which tells of the
// processes that this one can see.

#include <string>

namespace strata {

enum class Holder : std::uint8_t { nobody, somebody, unknown };
struct LockHolder {
  Holder holder = Holder::unknown;
  long process = 0;  // of `somebody`; 0: in another container
};
LockHolder lock_holder(const std::string& path);

}  // namespace strata
