#pragma once
// A BenchRig is an engine of one block size and depth with the scratch files of every path open and
// the buffers registered: what is set up once and measured with many times.
//
// Thread contract: one thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench_site.hpp"
#include "drive_load.hpp"
#include "strata/io/io_engine.hpp"

namespace strata {

struct RigOptions {
  std::string io_engine;
  std::uint64_t block_bytes = 0;
  int depth = 0;
  std::uint64_t file_bytes = 0;
};

class BenchRig {
 public:
  // Sites and memory outlive the rig. Throws ConfigError where a file system refuses O_DIRECT, or
  // when blocks are no multiple of what it asks for.
  BenchRig(const RigOptions& options, std::span<const BenchSite> sites,
           std::span<std::byte> memory);
  ~BenchRig();
  BenchRig(const BenchRig&) = delete;
  BenchRig& operator=(const BenchRig&) = delete;

  IoEngine& engine() { return *engine_; }
  const RigOptions& options() const { return options_; }
  FileId source(std::size_t site) const { return files_[site].source; }
  FileId target(std::size_t site) const { return files_[site].target; }
  std::span<std::byte> memory() const { return memory_; }

  struct Measured {
    LoadSample sample;
    int depth = 0;
  };
  // All of `sites` at once, each with its share of the memory.
  Measured measure(std::span<const std::size_t> sites, NvmePattern pattern, BlocksAhead ahead,
                   double duration_s, const DriveLoad::Tick& tick);

  struct NewFiles {
    LoadSample written;
    double sync_seconds = 0;  // until all of it was durable

    double bytes_per_s() const { return written.bytes() / (written.seconds + sync_seconds); }
  };
  // The same blocks, each once, into files that were not there, their space reserved. They are
  // gone when this returns or throws.
  NewFiles write_new_files(std::span<const std::size_t> sites, double duration_s,
                           const DriveLoad::Tick& tick);

  // Until all that was written to the targets of these sites is durable, in seconds.
  double sync_targets(std::span<const std::size_t> sites) { return sync_seconds(lanes_of(sites)); }

 private:
  struct Files {
    FileId source, target;
  };
  FileId open(const std::string& path);
  std::vector<LoadLane> lanes_of(std::span<const std::size_t> sites) const;
  double sync_seconds(std::span<const LoadLane> lanes);

  const RigOptions options_;
  const std::span<const BenchSite> sites_;
  const std::span<std::byte> memory_;
  std::unique_ptr<IoEngine> engine_;
  std::vector<Files> files_;
};

}  // namespace strata
