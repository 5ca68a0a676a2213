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

bool is_lock_of(const LockLine& line, const struct stat& facts) {
  return std::string_view(line.kind) == "FLOCK" && line.inode == facts.st_ino &&
         line.device_major == major(facts.st_dev) && line.device_minor == minor(facts.st_dev);
}

}  // namespace

LockHolder lock_holder(const std::string& path) {
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) != 0) return {};
  std::ifstream locks("/proc/locks");
  if (!locks) return {};
  for (std::string text; std::getline(locks, text);) {
    LockLine line;
    if (parse(text, line) && is_lock_of(line, facts)) return {Holder::somebody, line.process};
  }
  return {Holder::nobody, 0};
}

}  // namespace strata
