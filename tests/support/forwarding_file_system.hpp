#pragma once
// A FileSystem that passes every operation on to a real one: the base of those that choose which,
// or fail.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strata/io/file_system.hpp"

namespace strata::testing {

class ForwardingFileSystem : public FileSystem {
 public:
  bool exists(const std::string& path) const override { return at("look for", path).exists(path); }
  bool is_directory(const std::string& path) const override {
    return at("look for", path).is_directory(path);
  }
  std::vector<std::string> list(const std::string& path) const override {
    return at("list", path).list(path);
  }
  std::uint64_t free_bytes(const std::string& path) const override {
    return at("inspect", path).free_bytes(path);
  }
  std::uint64_t file_bytes(const std::string& path) const override {
    return at("inspect", path).file_bytes(path);
  }
  std::uint64_t allocated_bytes(const std::string& path) const override {
    return at("inspect", path).allocated_bytes(path);
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

 protected:
  // Where this operation is done. May throw instead.
  virtual FileSystem& at(const char* action, const std::string& path) const = 0;
};

}  // namespace strata::testing
