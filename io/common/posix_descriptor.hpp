#pragma once
// A PosixDescriptor owns an open descriptor of the host, and opens paths whatever signals arrive.
//
// Thread contract: none of its own.

#include <sys/stat.h>

#include <string>
#include <string_view>

namespace strata {

class PosixDescriptor {
 public:
  // -1 when the kernel refuses; errno says why.
  static PosixDescriptor open(const std::string& path, int flags);
  explicit PosixDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~PosixDescriptor();
  PosixDescriptor(PosixDescriptor&& other) noexcept;
  PosixDescriptor& operator=(PosixDescriptor&& other) noexcept;

  int get() const { return descriptor_; }
  // Throws SystemError: EISDIR or EINVAL for what is no regular file.
  struct stat regular_file_facts(std::string_view action, const std::string& path) const;
  // Closes it now; 0, or what the kernel had to say about earlier writes.
  int close();

 private:
  int descriptor_ = -1;
};

}  // namespace strata
