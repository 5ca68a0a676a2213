#pragma once
// Where a test may write: nobody else does, also of another build's tests that run beside it.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace strata {

inline std::filesystem::path own_path(const std::string& name) {
  return std::filesystem::path(::testing::TempDir()) /
         ("strata-" + std::to_string(::getpid()) + "-" + name);
}

// A folder of that name, removed with what is in it.
class OwnFolder {
 public:
  explicit OwnFolder(const std::string& name) : path_(own_path(name)) {
    std::filesystem::create_directories(path_);
  }
  ~OwnFolder() { std::filesystem::remove_all(path_); }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path path_;
};

}  // namespace strata
