#pragma once
// Measures drives the way a run uses them: O_DIRECT through the engine of the run, buffers on 2 MiB
// pages registered once, whole tiles. Works in a scratch directory below each path, of a stated
// size, removed at the end and when interrupted; never on raw devices.
//
// Thread contract: one thread.

#include <string>
#include <vector>

#include "strata/io/io_engine.hpp"
#include "strata/measure/bench_watch.hpp"
#include "strata/measure/nvme_report.hpp"

namespace strata {

enum class Sweep : std::uint8_t { off, on };
enum class CompareFio : std::uint8_t { no, yes };

struct NvmeBenchOptions {
  std::vector<std::string> paths;
  // Per path and file: one that is read, one that is written over, and a new one.
  std::uint64_t file_bytes = 4ull << 30;
  std::uint64_t buffer_bytes = 256ull << 20;
  std::uint64_t block_bytes = 4ull << 20;  // where no sweep is asked
  int depth = 32;
  std::vector<NvmePattern> patterns = {nvme_patterns.begin(), nvme_patterns.end()};
  double duration_s = 2;  // of each sample
  int repeats = 5;
  Sweep sweep = Sweep::off;
  double sweep_s = 60;     // what all of the sweep may take, about
  double sustained_s = 0;  // 0: not asked
  CompareFio fio = CompareFio::no;
  std::string io_engine = "auto";
  BenchWatch watch = {};
};

// Throws ConfigError for a path that is no drive (tmpfs, or a file system that refuses O_DIRECT:
// what such a path gives is RAM's bandwidth, not a drive's) or has too little space.
NvmeReport bench_nvme(const NvmeBenchOptions& options);

}  // namespace strata
