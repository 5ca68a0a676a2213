// Whether steps take as long as predicted. Trains a small model on the host device with links, a
// drive, compute and optimizer slowed to stated rates (no CPU is burned: everything sleeps out its
// time), under configurations that differ in tiers, schedules, slots and accumulation, and puts the
// simulator's prediction beside what was measured. All runs of one step shape must give the same
// losses. Exits with 1 when a prediction is off by more than --tolerance.
//
//   plan_accuracy [--steps 10] [--tolerance 0.10] [--only NAME]

#include <fmt/format.h>

#include <functional>

#include "bench/paced/accuracy_options.hpp"
#include "bench/paced/paced_training.hpp"
#include "bench/paced/placements.hpp"
#include "strata/core/text_table.hpp"

namespace strata::bench {
namespace {

constexpr PacedRates rates{
    .up = 100e6, .down = 80e6, .compute = 6e9, .update = 15e6, .read = 120e6, .write = 80e6};
constexpr std::int64_t tokens = 128;

struct Case {
  std::string name;
  std::function<void(RunConfig&)> adjust;
};

std::vector<Case> cases() {
  const auto on = [](const TierFractions& where) {
    return [where](RunConfig& c) { all_on(c, where); };
  };
  const auto state_on_nvme = [](const std::string& order, int micro_batches, int group) {
    return [=](RunConfig& c) {
      all_on(c, cpu);
      optimizer_on(c, nvme);
      c.offload.update_order = order;
      accumulate(c, micro_batches, group);
    };
  };
  return {
      {"all gpu", on(gpu)},
      {"all cpu", on(cpu)},
      {"all nvme", on(nvme)},
      {"weights gpu, state cpu", [](RunConfig& c) { all_on(c, gpu), optimizer_on(c, cpu); }},
      {"weights gpu, state nvme", [](RunConfig& c) { all_on(c, gpu), optimizer_on(c, nvme); }},
      {"mixed",
       [](RunConfig& c) {
         all_on(c, {0.3, 0.4, 0.3});
       }},
      {"mixed, 1 slot of each",
       [](RunConfig& c) {
         all_on(c, {0.3, 0.4, 0.3});
         slots(c, 1);
       }},
      {"all nvme, 8 slots of each",
       [](RunConfig& c) {
         all_on(c, nvme);
         slots(c, 8);
       }},
      {"all cpu, streamed updates",
       [](RunConfig& c) { all_on(c, cpu), c.offload.streamed_updates = 1; }},
      {"state nvme, after backward", state_on_nvme("after_backward", 1, 1)},
      {"state nvme, deferred", state_on_nvme("deferred", 1, 1)},
      {"state nvme, during backward",
       [=](RunConfig& c) {
         state_on_nvme("during_backward", 1, 1)(c);
         c.max_grad_norm = 0;
       }},
      {"state nvme, after backward, 4 horizontal", state_on_nvme("after_backward", 4, 1)},
      {"state nvme, deferred, 4 horizontal", state_on_nvme("deferred", 4, 1)},
      {"state nvme, deferred, 4 by 2", state_on_nvme("deferred", 4, 2)},
      {"state nvme, deferred, 4 vertical", state_on_nvme("deferred", 4, 4)},
      {"all cpu, 4 horizontal", [](RunConfig& c) { all_on(c, cpu), accumulate(c, 4, 1); }},
      {"all cpu, 4 vertical", [](RunConfig& c) { all_on(c, cpu), accumulate(c, 4, 4); }},
      {"weights nvme, 4 horizontal",
       [](RunConfig& c) { all_on(c, cpu), c.offload.weights = nvme, accumulate(c, 4, 1); }},
      {"weights nvme, 4 vertical",
       [](RunConfig& c) { all_on(c, cpu), c.offload.weights = nvme, accumulate(c, 4, 4); }},
  };
}

TextTable empty_table() {
  constexpr auto right = TextTable::Align::right;
  return TextTable({{"configuration"},
                    {"predicted", right},
                    {"measured", right},
                    {"predicted/measured", right},
                    {"bound", right},
                    {"bound/measured", right},
                    {"bound by"},
                    {"losses"}});
}

std::vector<std::string> row(const Case& what, const PacedResult& result, bool same_losses) {
  const double predicted = result.predicted_seconds(), measured = result.measured_seconds();
  const double bound = result.predicted().bound_seconds();
  return {what.name,
          fmt::format("{:.3f} s", predicted),
          fmt::format("{:.3f} s", measured),
          fmt::format("{:.3f}", predicted / measured),
          fmt::format("{:.3f} s", bound),
          fmt::format("{:.2f}", bound / measured),
          std::string(resource_name(result.predicted().bound_by)),
          same_losses ? "same" : "NOT THE SAME"};
}

int run_bench(const AccuracyOptions& options) {
  TextTable table = empty_table();
  const PacedTraining training(rates, options.steps, tokens);
  KnownLosses known;
  bool sound = true;
  for (const Case& what : cases()) {
    if (!options.asks_for(what.name)) continue;
    RunConfig config = training.base();
    what.adjust(config);
    const PacedResult result = training.run(config);
    const bool same = known.same(config, result.losses);
    sound =
        sound && same && options.is_accurate(result.predicted_seconds(), result.measured_seconds());
    table.add_row(row(what, result, same));
    fmt::print(stderr, "{}: {:.3f}\n", what.name,
               result.predicted_seconds() / result.measured_seconds());
  }
  fmt::print("{}", table.text());
  return sound ? 0 : 1;
}

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) {
  return strata::bench::run_with_options(
      "Predicted against measured step times on a slowed host device", argc, argv,
      strata::bench::run_bench);
}
