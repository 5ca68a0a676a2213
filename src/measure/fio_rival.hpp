#pragma once
// The rival our rates are held against: on each drive and pattern the fastest job that a short
// sweep of fio finds. Thread contract: one thread.

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "bench_session.hpp"
#include "fio.hpp"

namespace strata {

class FioRival {
 public:
  explicit FioRival(const BenchSession& session) : session_(session) {}

  static double choice_seconds(const BenchSession& session);
  static double sample_seconds(const BenchSession& session);
  // Finds the job for every drive and pattern.
  void choose();
  // What choose() found, on all drives of the target at once: once for the rate, once more for the
  // CPU time. Nothing: fio could not.
  std::optional<FioSample> sample(const BenchTarget& target, NvmePattern pattern) const;
  std::string job_text(const BenchTarget& target, NvmePattern pattern) const;

 private:
  using Key = std::pair<std::size_t, NvmePattern>;
  void choose_for(std::size_t site, NvmePattern pattern);
  FioJob job(std::size_t site, NvmePattern pattern, const FioSetup& setup) const;
  std::optional<FioSample> run(const std::vector<FioJob>& jobs, double duration_s,
                               FioStart start) const;

  const BenchSession& session_;
  std::map<Key, FioSetup> chosen_;
};

}  // namespace strata
