#pragma once
// What every part of a benchmark shares: where it measures, with what memory, for how long, and how
// it tells its progress. Thread contract: one thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench_progress.hpp"
#include "bench_rig.hpp"
#include "bench_site.hpp"
#include "strata/measure/nvme_bench.hpp"

namespace strata {

// Drives that work at the same time.
struct BenchTarget {
  std::string name;                // a path, or "all"
  std::vector<std::size_t> sites;  // indices
};
std::vector<BenchTarget> bench_targets(std::span<const std::string> paths);

struct BenchSession {
  const NvmeBenchOptions& options;
  std::uint64_t file_bytes;
  std::span<const BenchSite> sites;
  std::span<std::byte> memory;
  BenchProgress& progress;

  BenchTarget everything() const { return bench_targets(options.paths).back(); }
  bool reads_source() const;
  bool writes_target() const;
  std::unique_ptr<BenchRig> make_rig(std::uint64_t block_bytes, int depth) const;
  // Nothing but progress and the wish to stop.
  DriveLoad::Tick tick() const;
};

bool asks_for(const NvmeBenchOptions& options, NvmePattern pattern);
Latency latency_of(std::vector<double> microseconds);
double latency_sample_s(double duration_s);

}  // namespace strata
