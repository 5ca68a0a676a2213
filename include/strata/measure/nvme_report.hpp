#pragma once
// What `strata bench nvme` found out, as a value: measured once, then shown as a table, kept as
// JSON, plotted, compared with another. Rates are bytes per second; GB is 1e9 bytes.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/measure/samples.hpp"
#include "strata/topology/drive.hpp"

namespace strata {

enum class NvmePattern : std::uint8_t {
  read,
  write,
  mixed,  // as many bytes read as written, at the same time: what an optimizer step does
};
inline constexpr std::array nvme_patterns = {NvmePattern::read, NvmePattern::write,
                                             NvmePattern::mixed};
std::string_view nvme_pattern_name(NvmePattern pattern);
NvmePattern parse_nvme_pattern(std::string_view name);  // Throws ConfigError.

// The target of results of every path at once.
inline constexpr std::string_view all_drives = "all";

struct Latency {
  double p50_us = 0, p99_us = 0, max_us = 0;  // of one block, from submission to completion
};

// One pattern at one block size and depth. Rates count bytes read plus bytes written.
struct NvmeResult {
  NvmePattern pattern = NvmePattern::read;
  std::string target;  // a path, or "all" when every path works at once
  std::uint64_t block_bytes = 0;
  int depth = 0;  // blocks in flight per drive
  Samples bytes_per_s;
  Samples cpu_seconds_per_gb;  // of the process
  Latency latency;
  // Of `write`: the same blocks into files that were not there, their space reserved, until a flush
  // has made them durable: what checkpoints get. Empty: not measured, as in older reports.
  std::optional<Samples> new_file_bytes_per_s;
  // The same work done by fio in the same run, alternating; empty: not asked, or not installed.
  std::optional<Samples> fio_bytes_per_s, fio_cpu_seconds_per_gb;
  // The best job fio found for this pattern, which those samples are of: "io_uring, 4.00 MiB x 32".
  // Several drives: joined by "; ". Empty without fio.
  std::string fio_job;
};

// Bandwidth over time at full load, after which drives with a fast cache fall to what they can
// really keep up.
struct SustainedResult {
  NvmePattern pattern = NvmePattern::write;
  std::string target;
  double interval_s = 1;
  std::vector<double> bytes_per_s;     // one per interval
  std::optional<std::uint64_t> knee;   // the interval in which it fell for good; none: it did not
  double before_knee_bytes_per_s = 0;  // medians
  double after_knee_bytes_per_s = 0;
};

struct NvmeReport {
  static constexpr int schema_version = 1;
  std::string strata_version;           // filled by the caller of bench_nvme()
  std::string started_at;               // ISO 8601, UTC
  std::string kernel, cpu, engine;      // engine: IoEngine::describe()
  std::uint64_t buffer_page_bytes = 0;  // pages behind the buffers: 2 MiB, or 4 KiB
  std::uint64_t file_bytes = 0;         // per path
  int repeats = 0;
  std::vector<DriveFacts> drives;   // one per path
  std::vector<NvmeResult> results;  // at the chosen block and depth; per path, then all
  std::vector<NvmeResult> sweep;    // block x depth; empty when not asked
  std::vector<SustainedResult> sustained;
  Samples sync_seconds;                // fsync after each sample of writes
  std::uint64_t verified_bytes = 0;    // read back and compared
  std::uint64_t best_block_bytes = 0;  // of the sweep, or as asked
  int best_depth = 0;
  std::vector<std::string> notes;  // what a reader should know: "fio is not installed ..."
};

std::string to_json(const NvmeReport& report);
// Throws ConfigError for anything but a report of a known schema version.
NvmeReport nvme_report_from_json(const std::string& text, const std::string& path);

// Tables for people.
std::string format_nvme_report(const NvmeReport& report);
// B against A: per pattern and target the ratio of medians, and whether it is more than the noise
// of both (their ranges do not overlap).
std::string compare_nvme_reports(const NvmeReport& a, const NvmeReport& b);
// Bandwidth over block x depth, and over time where it was sustained. One SVG document.
std::string plot_nvme_report(const NvmeReport& report);

}  // namespace strata
