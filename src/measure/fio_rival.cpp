#include "fio_rival.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strata/core/clock.hpp"

namespace strata {
namespace {

constexpr double short_sample_s_max = 1;
constexpr double fio_start_s = 0.4;

double short_sample_s(const NvmeBenchOptions& options) {
  return std::min(options.duration_s, short_sample_s_max);
}

}  // namespace

double FioRival::choice_seconds(const BenchSession& session) {
  const auto num_samples = fio_setups(session.file_bytes).size() * session.sites.size() *
                           session.options.patterns.size();
  return static_cast<double>(num_samples) * (short_sample_s(session.options) + fio_start_s);
}

double FioRival::sample_seconds(const BenchSession& session) {
  return session.options.duration_s + short_sample_s(session.options) + 2 * fio_start_s;
}

void FioRival::choose() {
  for (std::size_t site = 0; site < session_.sites.size(); ++site) {
    for (const NvmePattern pattern : session_.options.patterns) choose_for(site, pattern);
  }
}

void FioRival::choose_for(std::size_t site, NvmePattern pattern) {
  const double sample_s = short_sample_s(session_.options);
  double best = 0;
  for (const FioSetup& setup : fio_setups(session_.file_bytes)) {
    session_.progress.begin(fmt::format("fio's best {} on {}: {}", nvme_pattern_name(pattern),
                                        session_.sites[site].path, setup.text()),
                            sample_s + fio_start_s);
    const auto sample = run({job(site, pattern, setup)}, sample_s, FioStart::counted);
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

std::optional<FioSample> FioRival::run(const std::vector<FioJob>& jobs, double duration_s,
                                       FioStart start) const {
  const std::int64_t begin_ns = now_ns();
  return run_fio(jobs, duration_s, start,
                 [&] { session_.progress.at(seconds(now_ns() - begin_ns)); });
}

std::optional<FioSample> FioRival::sample(const BenchTarget& target, NvmePattern pattern) const {
  std::vector<FioJob> jobs;
  for (const std::size_t site : target.sites) {
    const auto setup = chosen_.find({site, pattern});
    if (setup == chosen_.end()) return std::nullopt;
    jobs.push_back(job(site, pattern, setup->second));
  }
  auto sample = run(jobs, session_.options.duration_s, FioStart::counted);
  const auto cpu = run(jobs, short_sample_s(session_.options), FioStart::left_out);
  if (!sample || !cpu) return std::nullopt;
  sample->cpu_seconds_per_gb = cpu->cpu_seconds_per_gb;
  return sample;
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
