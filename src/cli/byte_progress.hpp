#pragma once
// Shows how far a load or an export is, with its rate and the time left, on the error stream. Made
// when it begins. Thread contract: one thread.

#include <cstdint>
#include <memory>
#include <string>

#include "cli/progress_line.hpp"
#include "strata/core/byte_watch.hpp"

namespace strata {

class ByteProgress {
 public:
  // "loading", "state". `stream` may be null: nothing is shown.
  ByteProgress(const std::string& doing, std::string what, std::FILE* stream = stderr);

  // Outlived by this.
  ByteWatch watch();
  // Takes the line away. "141 GB of state in 92.0 s, 1.53 GB/s".
  std::string finish();

 private:
  double bytes_per_s() const;

  const std::string doing_, what_;
  const std::int64_t start_ns_;
  std::uint64_t done_ = 0;
  std::unique_ptr<ProgressLine> line_;
};

}  // namespace strata
