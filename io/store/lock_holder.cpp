#include "io/store/lock_holder.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdio>
#include <fstream>

namespace strata {
namespace {

struct LockLine {
  char kind[16] = {};
  long process = 0;
  unsigned device_major = 0, device_minor = 0;
  unsigned long inode = 0;
};

// "3: FLOCK  ADVISORY  WRITE 1234 08:02:131 0 EOF"; lines of those who wait begin "3: ->".
bool parse(const std::string& text, LockLine& line) {
  return std::sscanf(text.c_str(), "%*u: %15s %*s %*s %ld %x:%x:%lu", line.kind, &line.process,
                     &line.device_major, &line.device_minor, &line.inode) == 5;
}

bool may_be_lock_of(const LockLine& line, ino_t inode) {
  return std::string_view(line.kind) == "FLOCK" && line.inode == inode;
}

bool is_on(const LockLine& line, dev_t device) {
  return line.device_major == major(device) && line.device_minor == minor(device);
}

}  // namespace

LockHolder lock_holder(const std::string& path) {
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) != 0) return {};
  std::ifstream locks("/proc/locks");
  if (!locks) return {};
  return lock_holder(locks, facts.st_dev, facts.st_ino);
}

LockHolder lock_holder(std::istream& locks, dev_t device, ino_t inode) {
  LockHolder holder = {Holder::nobody, 0};
  for (std::string text; std::getline(locks, text);) {
    LockLine line;
    if (!parse(text, line) || !may_be_lock_of(line, inode)) continue;
    if (is_on(line, device)) return {Holder::somebody, line.process};
    holder = {Holder::unknown, 0};
  }
  return holder;
}

}  // namespace strata
