#include "fio_rival.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strata/core/clock.hpp"

namespace strata {
namespace {

constexpr double choice_sample_s_max = 1;
constexpr double fio_start_s = 0.6;

double choice_sample_s(const NvmeBenchOptions& options) {
  return std::min(options.duration_s, choice_sample_s_max);
}

}  // namespace

double FioRival::choice_seconds(const BenchSession& session) {
  const auto num_samples = fio_setups(session.file_bytes).size() * session.sites.size() *
                           session.options.patterns.size();
  return static_cast<double>(num_samples) * (choice_sample_s(session.options) + fio_start_s);
}

void FioRival::choose() {
  for (std::size_t site = 0; site < session_.sites.size(); ++site) {
    for (const NvmePattern pattern : session_.options.patterns) choose_for(site, pattern);
  }
}

void FioRival::choose_for(std::size_t site, NvmePattern pattern) {
  const double sample_s = choice_sample_s(session_.options);
  double best = 0;
  for (const FioSetup& setup : fio_setups(session_.file_bytes)) {
    session_.progress.begin(fmt::format("fio's best {} on {}: {}", nvme_pattern_name(pattern),
                                        session_.sites[site].path, setup.text()),
                            sample_s + fio_start_s);
    const auto sample = run({job(site, pattern, setup)}, sample_s);
    if (!sample || sample->bytes_per_s <= best) continue;
    best = sample->bytes_per_s;
    chosen_[{site, pattern}] = setup;
  }
}

FioJob FioRival::job(std::size_t site, NvmePattern pattern, const FioSetup& setup) const {
  return {.setup = setup,
          .pattern = pattern,
          .source = session_.sites[site].source,
          .target = session_.sites[site].target,
          .file_bytes = session_.file_bytes};
}

std::optional<FioSample> FioRival::run(const std::vector<FioJob>& jobs, double duration_s) const {
  const std::int64_t start = now_ns();
  return run_fio(jobs, duration_s, [&] { session_.progress.at(seconds(now_ns() - start)); });
}

std::optional<FioSample> FioRival::sample(const BenchTarget& target, NvmePattern pattern) const {
  std::vector<FioJob> jobs;
  for (const std::size_t site : target.sites) {
    const auto setup = chosen_.find({site, pattern});
    if (setup == chosen_.end()) return std::nullopt;
    jobs.push_back(job(site, pattern, setup->second));
  }
  return run(jobs, session_.options.duration_s);
}

std::string FioRival::job_text(const BenchTarget& target, NvmePattern pattern) const {
  std::string text;
  for (const std::size_t site : target.sites) {
    const auto setup = chosen_.find({site, pattern});
    if (setup != chosen_.end()) text += (text.empty() ? "" : "; ") + setup->second.text();
  }
  return text;
}

}  // namespace strata
