#pragma once
// A FileSystem whose disk can go away: from then on everything fails, as it does on a device that
// was pulled out.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "strata/core/error.hpp"
#include "strata/io/file_system.hpp"

namespace strata::testing {

class FaultyFileSystem : public FileSystem {
 public:
  explicit FaultyFileSystem(FileSystem& real) : real_(real) {}
  void go_away(int error_number) { error_number_ = error_number; }
  // Throws once the disk is gone.
  void need(const std::string& action, const std::string& path) const {
    if (error_number_ != 0) throw SystemError(action, path, error_number_);
  }

  bool exists(const std::string& path) const override {
    return error_number_ == 0 && real_.exists(path);
  }
  bool is_directory(const std::string& path) const override {
    return error_number_ == 0 && real_.is_directory(path);
  }
  std::vector<std::string> list(const std::string& directory) const override {
    return at("list", directory).list(directory);
  }
  std::uint64_t free_bytes(const std::string& path) const override {
    return at("look at", path).free_bytes(path);
  }
  std::uint64_t file_bytes(const std::string& path) const override {
    return at("look at", path).file_bytes(path);
  }
  std::uint64_t allocated_bytes(const std::string& path) const override {
    return at("look at", path).allocated_bytes(path);
  }
  void make_directory(const std::string& path) override {
    at("make directory", path).make_directory(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    at("rename", from).rename(from, to);
  }
  void remove(const std::string& path) override { at("remove", path).remove(path); }
  void sync_directory(const std::string& path) override { at("flush", path).sync_directory(path); }
  std::vector<std::byte> read_file(const std::string& path,
                                   std::uint64_t bytes_max) const override {
    return at("read", path).read_file(path, bytes_max);
  }
  void write_file(const std::string& path, std::span<const std::byte> bytes) override {
    at("write", path).write_file(path, bytes);
  }
  std::unique_ptr<FileLock> try_lock(const std::string& path) override {
    return at("lock", path).try_lock(path);
  }

 private:
  FileSystem& at(const std::string& action, const std::string& path) const {
    need(action, path);
    return real_;
  }

  FileSystem& real_;
  std::atomic<int> error_number_{0};
};

}  // namespace strata::testing
