#pragma once
// An OpenFile is what an engine keeps of a file between open() and close(): a descriptor or a
// simulated file.
//
// Thread contract: all methods from any thread; `pending` belongs to the RequestBoard, under its
// mutex.

#include <cstdint>
#include <string>
#include <utility>

#include "strata/io/io_engine.hpp"

namespace strata {

class OpenFile {
 public:
  OpenFile(std::string path, OpenMode mode) : path_(std::move(path)), mode_(mode) {}
  virtual ~OpenFile() = default;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  virtual std::uint64_t alignment() const = 0;
  virtual std::uint64_t size() const = 0;
  virtual std::uint64_t bytes_free() const = 0;  // on its file system
  virtual FileInfo info() const = 0;
  virtual void preallocate(std::uint64_t bytes) = 0;
  virtual void sync() = 0;

  const std::string& path() const { return path_; }
  bool writable() const { return mode_ == OpenMode::read_write_create; }

  int pending = 0;  // requests submitted and not yet completed

 private:
  const std::string path_;
  const OpenMode mode_;
};

}  // namespace strata
