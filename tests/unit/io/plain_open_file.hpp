#pragma once
// An OpenFile without a disk behind it.

#include <string>

#include "io/common/open_file.hpp"

namespace strata::testing {

class PlainOpenFile : public OpenFile {
 public:
  PlainOpenFile(std::string path, std::uint64_t alignment)
      : OpenFile(std::move(path), OpenMode::read_write_create), alignment_(alignment) {}
  std::uint64_t alignment() const override { return alignment_; }
  std::uint64_t size() const override { return 1 << 20; }
  std::uint64_t bytes_free() const override { return 0; }
  FileInfo info() const override {
    FileInfo info;
    info.path = path();
    info.alignment = alignment_;
    return info;
  }
  void preallocate(std::uint64_t) override {}
  void sync() override {}

 private:
  const std::uint64_t alignment_;
};

}  // namespace strata::testing
