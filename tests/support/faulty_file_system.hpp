#pragma once
// A FileSystem whose disk can go away: from then on everything fails, as it does on a device that
// was pulled out.

#include <atomic>
#include <string>

#include "strata/core/error.hpp"
#include "support/forwarding_file_system.hpp"

namespace strata::testing {

class FaultyFileSystem : public ForwardingFileSystem {
 public:
  explicit FaultyFileSystem(FileSystem& real) : real_(real) {}
  void go_away(int error_number) { error_number_ = error_number; }
  // Throws once the disk is gone.
  void need(const char* action, const std::string& path) const {
    if (error_number_ != 0) throw SystemError(action, path, error_number_);
  }

  bool exists(const std::string& path) const override {
    return error_number_ == 0 && real_.exists(path);
  }
  bool is_directory(const std::string& path) const override {
    return error_number_ == 0 && real_.is_directory(path);
  }

 private:
  FileSystem& at(const char* action, const std::string& path) const override {
    need(action, path);
    return real_;
  }

  FileSystem& real_;
  std::atomic<int> error_number_{0};
};

}  // namespace strata::testing
