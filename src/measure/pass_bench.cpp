#include "pass_bench.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "machine_text.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"

namespace strata {
namespace {

constexpr int repeats_max = 10'000, threads_max = 4096;
constexpr std::uint64_t spare_bytes = 512 * MiB;
constexpr double busy = 0.5;  // cores' worth of others' work

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

}  // namespace

void check_repeats(int repeats) {
  if (repeats < 1 || repeats > repeats_max)
    throw ConfigError(fmt::format("--repeats {}: 1 to {} are possible", repeats, repeats_max));
}

void check_threads(std::span<const int> threads) {
  for (const int count : threads)
    if (count < 1 || count > threads_max)
      throw ConfigError(fmt::format("--threads {}: 1 to {} are possible", count, threads_max));
}

void check_free_memory(std::uint64_t wanted_bytes, const char* advice) {
  const std::uint64_t free_bytes = read_topology().available_memory_bytes;
  if (wanted_bytes + spare_bytes > free_bytes)
    throw OutOfMemory("host memory", wanted_bytes + spare_bytes, free_bytes, advice);
}

PassReport begin_pass_report(PassBench bench, int repeats, const PassSampler& sampler) {
  PassReport report;
  report.bench = bench;
  report.started_at = utc_now_text();
  report.kernel = kernel_text();
  report.cpu = processor_text();
  report.usable_cores = read_topology().usable_cores;
  report.ping_cores = format_ping_cores(sampler.cores());
  report.load_before = load_average();
  report.repeats = repeats;
  if (report.load_before > busy)
    report.notes.push_back(
        fmt::format("the machine was busy before the start (load {:.1f}): others take memory "
                    "bandwidth too",
                    report.load_before));
  return report;
}

void end_pass_report(PassReport& report) {
  report.load_after = load_average();
  if (report.page_bytes < 2 * MiB)
    report.notes.push_back(
        fmt::format("the memory is on pages of {}: transparent huge pages were not granted",
                    format_bytes(report.page_bytes)));
}

}  // namespace strata
