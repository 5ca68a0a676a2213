#pragma once
// A PosixDescriptor owns an open descriptor of the host, and opens paths whatever signals arrive.
//
// Thread contract: none of its own.

#include <string>

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
  // Closes it now; 0, or what the kernel had to say about earlier writes.
  int close();

 private:
  int descriptor_ = -1;
};

}  // namespace strata
