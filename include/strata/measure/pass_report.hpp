#pragma once
// What `strata bench memory` and `strata bench adam` found out, as a value: the times of passes
// over memory, shown as a table, kept as JSON, compared with another report. GB is 1e9 bytes.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strata/measure/samples.hpp"

namespace strata {

enum class PassBench : std::uint8_t { memory, adam };
std::string_view pass_bench_name(PassBench bench);  // "memory"

// Whether the distance of the cores is measured beside each pass, see PassResult::ping_ns.
enum class Pings : std::uint8_t { taken, none };

// One pass over arrays of `count` elements each.
struct PassResult {
  std::string pass;  // "triad, streamed"; "adamw bf16/split/q8": gradient, master, moments
  int threads = 0;
  std::uint64_t count = 0;
  double bytes_per_element = 0;  // that the pass reads plus writes
  // What normal stores to memory not read before add to that: the lines are fetched first.
  double allocate_bytes_per_element = 0;
  Samples seconds;
  // A pass that touches the same bytes in the same order and computes next to nothing: sample i was
  // taken right before sample i of `seconds`. Empty: the pass is itself of that kind.
  Samples roofline_seconds;
  // From one core to another, before and after the samples: on a virtual machine it tells whether
  // the cores share a memory link just now. Empty: one core only.
  Samples ping_ns;

  Samples elements_per_s() const;
  Samples bytes_per_s() const;
  Samples roofline_bytes_per_s() const;
  Samples of_roofline() const;  // of each pair of samples: 1 is as fast as memory allows
};

struct PassReport {
  static constexpr int schema_version = 1;
  PassBench bench = PassBench::memory;
  std::string strata_version;  // filled by the caller of the benchmark
  std::string started_at;      // ISO 8601, UTC
  std::string kernel, cpu;
  int usable_cores = 0;
  std::string ping_cores;                  // "0 and 1"; empty: one core only
  double load_before = 0, load_after = 0;  // of the machine, over a minute; ours is in the second
  std::uint64_t page_bytes = 0;            // of the memory worked on: 2 MiB, or 4 KiB
  int repeats = 0;
  std::vector<PassResult> results;
  std::vector<std::string> notes;
};

std::string to_json(const PassReport& report);
// Throws ConfigError for anything but a report of a known schema version.
PassReport pass_report_from_json(const std::string& text, const std::string& path);
// Whether a JSON text claims to be such a report.
bool is_pass_report(const std::string& text);

// A table for people.
std::string format_pass_report(const PassReport& report);
// B against A, for each pass that either has. Throws ConfigError for two reports of two kinds.
std::string compare_pass_reports(const PassReport& a, const PassReport& b);

}  // namespace strata
