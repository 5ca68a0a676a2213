#pragma once
// A PosixFile is an open file of the host: its descriptor, whether O_DIRECT holds, and at which
// alignment.

#include <cstdint>
#include <memory>
#include <string>

#include "io/common/open_file.hpp"
#include "io/common/posix_descriptor.hpp"

namespace strata {

class PosixFile : public OpenFile {
 public:
  // Throws SystemError.
  PosixFile(const std::string& path, OpenMode mode, Caching caching);

  int descriptor() const { return descriptor_.get(); }
  std::uint64_t device() const;
  std::uint64_t alignment() const override { return alignment_; }
  std::uint64_t size() const override;
  std::uint64_t bytes_free() const override;
  FileInfo info() const override;
  void preallocate(std::uint64_t bytes) override;
  void sync() override;

  // The ring's name for this file; the ring's thread only.
  int ring_index = -1;

 private:
  void settle_caching();
  void become_buffered(std::string note);

  PosixDescriptor descriptor_;
  bool direct_ = false;
  std::uint64_t alignment_ = 1;
  std::string note_;
};

}  // namespace strata
