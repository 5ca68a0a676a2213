#pragma once
// What the I/O suites share: aligned memory with a pattern, completions that remember, a directory
// that goes away.

#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/core/philox.hpp"
#include "strata/io/io_engine.hpp"

namespace strata::testing {

// Zeroed memory at 4096 bytes; `shift` misaligns data().
class Buffer {
 public:
  explicit Buffer(std::uint64_t bytes, std::uint64_t shift = 0) : bytes_(bytes), shift_(shift) {
    const std::uint64_t room = (bytes + shift + 4095) / 4096 * 4096 + 4096;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, room)));
    std::fill_n(memory_.get(), room, std::byte{0});
  }
  static Buffer random(std::uint64_t bytes, std::uint64_t seed) {
    Buffer buffer(bytes);
    PhiloxStream stream(seed, 0);
    for (std::byte& one : buffer.span()) one = static_cast<std::byte>(stream.next_u32());
    return buffer;
  }
  std::byte* data() const { return memory_.get() + shift_; }
  std::uint64_t bytes() const { return bytes_; }
  std::span<std::byte> span() const { return {data(), bytes_}; }
  bool operator==(const Buffer& other) const {
    return std::equal(span().begin(), span().end(), other.span().begin(), other.span().end());
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::uint64_t bytes_;
  std::uint64_t shift_;
  std::unique_ptr<std::byte, Free> memory_;
};

// Remembers the result of one request and how often it was told.
class Outcome : public IoCompletion {
 public:
  void complete(const IoResult& result) noexcept override {
    const std::lock_guard lock(mutex_);
    result_ = result;
    ++calls_;
    changed_.notify_all();
  }
  IoResult wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return calls_ > 0; });
    return result_;
  }
  int calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  IoResult result_;
  int calls_ = 0;
};

class TempDirectory {
 public:
  TempDirectory() {
    path_ = ::testing::TempDir() + "/strata-io-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp " + path_);
  }
  ~TempDirectory() { std::filesystem::remove_all(path_); }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline IoRequest request(IoOp op, FileId file, std::uint64_t offset, std::span<std::byte> memory,
                         IoCompletion* completion = nullptr,
                         IoPriority priority = IoPriority::now) {
  return {op, file, offset, memory.data(), memory.size(), priority, completion};
}

inline IoResult run(IoEngine& engine, IoOp op, FileId file, std::uint64_t offset,
                    std::span<std::byte> memory) {
  Outcome outcome;
  const IoRequest one = request(op, file, offset, memory, &outcome);
  engine.submit({&one, 1});
  return outcome.wait();
}

}  // namespace strata::testing
