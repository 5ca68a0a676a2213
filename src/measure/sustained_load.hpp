#pragma once
// Full load for long: the bandwidth of every second, and where it fell for good.
// Thread contract: one thread.

#include <cstdint>
#include <vector>

#include "bench_session.hpp"
#include "drive_load.hpp"
#include "strata/measure/nvme_report.hpp"

namespace strata {

// Turns the running totals of a load into a rate per lane and interval.
class IntervalRates {
 public:
  explicit IntervalRates(double interval_s) : interval_s_(interval_s) {}

  void take(const LoadState& state);
  // [lane][interval]
  const std::vector<std::vector<double>>& bytes_per_s() const { return rates_; }

 private:
  const double interval_s_;
  LoadState last_;
  std::vector<std::vector<double>> rates_;
};

// With knee and medians.
SustainedResult make_sustained_result(NvmePattern pattern, std::string target, double interval_s,
                                      std::vector<double> bytes_per_s);

// All drives at once; a result per path and, for several, one of them together. The pattern is the
// one that wears most of those asked for: write, else mixed, else read.
std::vector<SustainedResult> run_sustained_load(const BenchSession& session, BenchRig& rig);

}  // namespace strata
