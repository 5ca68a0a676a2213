#include "sustained_load.hpp"

#include <fmt/format.h>

#include <utility>

#include "knee.hpp"

namespace strata {
namespace {

constexpr double sustained_interval_s = 1;

NvmePattern sustained_pattern(const NvmeBenchOptions& options) {
  for (const NvmePattern pattern : {NvmePattern::write, NvmePattern::mixed}) {
    if (asks_for(options, pattern)) return pattern;
  }
  return NvmePattern::read;
}

std::vector<double> sum_of(const std::vector<std::vector<double>>& lanes) {
  std::vector<double> sum(lanes.front().size());
  for (const auto& lane : lanes) {
    for (std::size_t at = 0; at < sum.size(); ++at) sum[at] += lane[at];
  }
  return sum;
}

double median_of(const std::vector<double>& rates, std::size_t begin, std::size_t end) {
  const auto at = [&](std::size_t index) {
    return rates.begin() + static_cast<std::ptrdiff_t>(index);
  };
  return Samples{{at(begin), at(end)}}.median();
}

}  // namespace

void IntervalRates::take(const LoadState& state) {
  if (last_.lane_bytes.empty()) {
    last_.lane_bytes.resize(state.lane_bytes.size());
    rates_.resize(state.lane_bytes.size());
  }
  // Boundaries are those of the clock, however late the one before was noticed.
  const auto boundary = static_cast<double>(rates_.front().size() + 1) * interval_s_;
  if (state.seconds < boundary) return;
  const double seconds = state.seconds - last_.seconds;
  for (std::size_t lane = 0; lane < rates_.size(); ++lane) {
    const auto bytes = static_cast<double>(state.lane_bytes[lane] - last_.lane_bytes[lane]);
    rates_[lane].push_back(bytes / seconds);
  }
  last_ = state;
}

SustainedResult make_sustained_result(NvmePattern pattern, std::string target, double interval_s,
                                      std::vector<double> bytes_per_s) {
  SustainedResult result;
  result.pattern = pattern;
  result.target = std::move(target);
  result.interval_s = interval_s;
  result.knee = find_knee(bytes_per_s);
  const std::size_t size = bytes_per_s.size(), knee = result.knee.value_or(size);
  result.before_knee_bytes_per_s = median_of(bytes_per_s, 0, knee);
  result.after_knee_bytes_per_s = median_of(bytes_per_s, result.knee ? knee : 0, size);
  result.bytes_per_s = std::move(bytes_per_s);
  return result;
}

std::vector<SustainedResult> run_sustained_load(const BenchSession& session, BenchRig& rig) {
  const NvmePattern pattern = sustained_pattern(session.options);
  session.progress.begin(fmt::format("sustained {}", nvme_pattern_name(pattern)),
                         session.options.sustained_s);
  IntervalRates rates(sustained_interval_s);
  rig.measure(session.everything().sites, pattern, BlocksAhead::queued, session.options.sustained_s,
              [&](const LoadState& state) {
                rates.take(state);
                session.progress.at(state.seconds);
              });
  std::vector<SustainedResult> results;
  for (const auto& lane : rates.bytes_per_s()) {
    results.push_back(make_sustained_result(pattern, session.options.paths[results.size()],
                                            sustained_interval_s, lane));
  }
  if (results.size() > 1) {
    results.push_back(make_sustained_result(pattern, session.everything().name,
                                            sustained_interval_s, sum_of(rates.bytes_per_s())));
  }
  return results;
}

}  // namespace strata
