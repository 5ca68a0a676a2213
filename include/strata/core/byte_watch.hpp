#pragma once
// How far a long move of bytes is, as whoever shows it is told. Thread contract: one thread.

#include <cstdint>
#include <functional>
#include <utility>

namespace strata {

// Told at the start, with nothing done, and often from then on. Empty: nobody wants to know.
using ByteWatch = std::function<void(std::uint64_t done, std::uint64_t total)>;

class WatchedBytes {
 public:
  WatchedBytes(std::uint64_t total, ByteWatch watch) : total_(total), watch_(std::move(watch)) {
    moved(0);
  }
  void moved(std::uint64_t bytes) {
    done_ += bytes;
    if (watch_) watch_(done_, total_);
  }

 private:
  const std::uint64_t total_;
  const ByteWatch watch_;
  std::uint64_t done_ = 0;
};

}  // namespace strata
