#include "bench_session.hpp"

#include <algorithm>
#include <cmath>

namespace strata {
namespace {

constexpr double latency_sample_s_max = 1;

double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace

std::vector<BenchTarget> bench_targets(std::span<const std::string> paths) {
  std::vector<BenchTarget> targets;
  BenchTarget all{std::string(all_drives), {}};
  for (const std::string& path : paths) {
    all.sites.push_back(targets.size());
    targets.push_back({path, {targets.size()}});
  }
  if (paths.size() > 1) targets.push_back(std::move(all));
  return targets;
}

bool asks_for(const NvmeBenchOptions& options, NvmePattern pattern) {
  return std::ranges::find(options.patterns, pattern) != options.patterns.end();
}

bool BenchSession::reads_source() const {
  return asks_for(options, NvmePattern::read) || asks_for(options, NvmePattern::mixed);
}

bool BenchSession::writes_target() const {
  return asks_for(options, NvmePattern::write) || asks_for(options, NvmePattern::mixed);
}

std::unique_ptr<BenchRig> BenchSession::make_rig(std::uint64_t block_bytes, int depth) const {
  return std::make_unique<BenchRig>(RigOptions{.io_engine = options.io_engine,
                                               .block_bytes = block_bytes,
                                               .depth = depth,
                                               .file_bytes = file_bytes},
                                    sites, memory);
}

DriveLoad::Tick BenchSession::tick() const {
  return [this](const LoadState& state) { progress.at(state.seconds); };
}

Latency latency_of(std::vector<double> microseconds) {
  if (microseconds.empty()) return {};
  std::ranges::sort(microseconds);
  return {.p50_us = percentile(microseconds, 0.5),
          .p99_us = percentile(microseconds, 0.99),
          .max_us = microseconds.back()};
}

double latency_sample_s(double duration_s) { return std::min(duration_s, latency_sample_s_max); }

}  // namespace strata
