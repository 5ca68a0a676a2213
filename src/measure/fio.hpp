#pragma once
// fio, the drive benchmark that people trust, doing the same work as ours: as processes of its own,
// on the same files, with buffers on 2 MiB pages (by glibc's tunable; its own would be on 4 KiB
// pages and a half to a third as fast).
//
// Thread contract: one thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "strata/measure/nvme_report.hpp"

namespace strata {

// How fio reaches a file.
struct FioSetup {
  std::string engine;  // "io_uring" (with registered files and buffers), "libaio"
  std::uint64_t block_bytes = 0;
  int depth = 0;
  std::string text() const;  // "io_uring, 4.00 MiB x 32"
};
// What a short sweep tries before it is compared with.
std::vector<FioSetup> fio_setups(std::uint64_t file_bytes);

struct FioJob {
  FioSetup setup;
  NvmePattern pattern = NvmePattern::read;
  // Files of whole, written blocks. A mixed job reads and writes the second, as much of each.
  std::string source, target;
  std::uint64_t file_bytes = 0;
};

// Whether what fio does before it is at full load is within what it counts. Left out, its CPU time
// is right (it fills its buffers at the start), but blocks in flight when it begins to count are
// counted whole, which flatters its rate by some percent. Counted, it is the other way round.
enum class FioStart : std::uint8_t { counted, left_out };

struct FioSample {
  double bytes_per_s = 0;
  double cpu_seconds_per_gb = 0;
};

enum class FioPresence : std::uint8_t { installed, missing };
FioPresence find_fio();

// All jobs at once. Nothing when fio cannot do one of them (an engine that this machine refuses).
// `tick`: see run_child().
std::optional<FioSample> run_fio(const std::vector<FioJob>& jobs, double duration_s, FioStart start,
                                 const std::function<void()>& tick);

// The two ends of run_fio().
std::vector<std::string> fio_arguments(const std::vector<FioJob>& jobs, double duration_s,
                                       FioStart start);
std::optional<FioSample> parse_fio(const std::string& text);

}  // namespace strata
