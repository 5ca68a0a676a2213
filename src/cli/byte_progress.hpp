#pragma once
// Shows how far a load or an export is, with its rate and the time left, on the error stream.
// Thread contract: one thread.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "strata/core/byte_watch.hpp"

namespace strata {

class ProgressLine;

class ByteProgress {
 public:
  // "loading", "state". `stream` may be null: nothing is shown.
  ByteProgress(const std::string& doing, std::string what, std::FILE* stream = stderr);
  ~ByteProgress();

  // Outlived by this.
  ByteWatch watch();
  // Takes the line away. "141 GB of state in 92.0 s, 1.53 GB/s".
  std::string finish();

 private:
  void begin();
  double elapsed_s() const;
  double bytes_per_s() const;

  const std::string doing_, what_;
  std::FILE* const stream_;
  std::int64_t start_ns_;
  std::uint64_t done_ = 0;
  std::unique_ptr<ProgressLine> line_;
};

}  // namespace strata
