#pragma once
// A ScratchDirectory is a directory of this process's own below one the user named: it goes away,
// files and all, with the object, and one that a killed process left behind is removed by the next.
//
// Thread contract: one thread.

#include <string>

namespace strata {

class ScratchDirectory {
 public:
  // Throws ConfigError when `parent` cannot be written.
  explicit ScratchDirectory(const std::string& parent);
  ~ScratchDirectory();
  ScratchDirectory(ScratchDirectory&& other) noexcept;
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  int descriptor_ = -1;  // holds the lock that tells a live process's directory from a dead one's
};

// Removes the scratch directories below `parent` that no live process holds.
void reclaim_scratch_directories(const std::string& parent);

}  // namespace strata
