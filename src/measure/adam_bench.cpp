#include "strata/measure/adam_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "page_backing.hpp"
#include "pass_bench.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::int64_t count_min = 4096, count_max = 1'000'000'000'000;

std::string_view rule_name(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::adamw:
      return "adamw";
    case UpdateRule::adam:
      return "adam";
    case UpdateRule::sgd:
      return "sgd";
    case UpdateRule::lion:
      return "lion";
  }
  return "";
}

void check_counts(const std::vector<std::int64_t>& counts) {
  for (const std::int64_t count : counts)
    if (count < count_min || count > count_max)
      throw ConfigError(
          fmt::format("--count {}: {} to {} are possible", count, count_min, count_max));
}

void check_options(const AdamBenchOptions& options) {
  check_repeats(options.repeats);
  check_threads(options.threads);
  check_counts(options.counts);
  std::uint64_t most = 0;
  for (const AdamLayout& layout : options.layouts)
    for (const std::int64_t count : options.counts)
      most = std::max(most, adam_passes_bytes(layout, count));
  check_free_memory(most, "give a smaller --count");
}

PassResult result_of(std::string pass, std::int64_t count, int threads, double bytes) {
  PassResult result;
  result.pass = std::move(pass);
  result.threads = threads;
  result.count = static_cast<std::uint64_t>(count);
  result.bytes_per_element = bytes;
  return result;
}

class AdamBench {
 public:
  explicit AdamBench(const AdamBenchOptions& options)
      : options_(options),
        progress_(options.watch),
        sampler_(options.repeats, progress_, options.pings),
        report_(begin_pass_report(PassBench::adam, options.repeats, sampler_)) {}

  PassReport run() {
    progress_.plan(static_cast<double>(num_samples()));
    for (const int threads : options_.threads)
      for (const std::int64_t count : options_.counts) run_layouts(count, threads);
    end_pass_report(report_);
    return std::move(report_);
  }

 private:
  std::size_t num_samples() const {
    std::set<DType> gradients;
    for (const AdamLayout& layout : options_.layouts) gradients.insert(layout.gradient);
    return (gradients.size() + options_.layouts.size()) * options_.threads.size() *
           options_.counts.size();
  }

  // The norm of each kind of gradient is measured with the first layout that has it.
  void run_layouts(std::int64_t count, int threads) {
    std::set<DType> normed;
    for (const AdamLayout& layout : options_.layouts) {
      AdamPasses passes(layout, count, threads);
      report_.page_bytes = page_bytes_behind(passes.memory());
      if (normed.insert(layout.gradient).second)
        sample({[&] { passes.norm(); }, [&] { passes.touch_norm(); }},
               result_of(norm_pass_name(layout.gradient), count, threads,
                         static_cast<double>(dtype_bytes(layout.gradient))));
      sample({[&] { passes.update(); }, [&] { passes.touch_update(); }},
             result_of(update_pass_name(layout), count, threads, update_pass_bytes(layout)));
    }
  }
  void sample(const TimedPass& pass, PassResult result) {
    sampler_.sample(pass, result);
    report_.results.push_back(std::move(result));
  }

  const AdamBenchOptions& options_;
  BenchProgress progress_;
  PassSampler sampler_;
  PassReport report_;
};

}  // namespace

std::string update_pass_name(const AdamLayout& layout) {
  return fmt::format("{} {}", rule_name(layout.rule), state_layout_name(layout));
}

std::string norm_pass_name(DType gradient) {
  return fmt::format("norm of {} gradient", dtype_name(gradient));
}

PassReport bench_adam(const AdamBenchOptions& options) {
  check_options(options);
  return AdamBench(options).run();
}

}  // namespace strata
