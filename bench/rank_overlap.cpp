// Whether collectives hide behind compute as predicted. Several ranks, threads of this process,
// train a small model with everything slowed to stated rates, under ZeRO stages, placements, slots
// and accumulations, over links from fast to slower than compute; the simulator's step, busy time
// of the comm lane and exposed waits for it stand beside what was measured. All runs of one shape
// of a step must give the same losses. Exits with 1 when a step or the exposed time is off by more
// than --tolerance, each as a share of the step.
//
//   rank_overlap [--steps 10] [--tolerance 0.10] [--only NAME]

#include <fmt/format.h>

#include <functional>

#include "bench/paced/accuracy_options.hpp"
#include "bench/paced/paced_training.hpp"
#include "bench/paced/placements.hpp"
#include "strata/core/text_table.hpp"

namespace strata::bench {
namespace {

// Compute of a micro-batch takes about 1.1 s, and collectives of stage 3 among 2 ranks 0.22, 0.9
// and 2.2 s.
constexpr double fast = 60e6, even = 15e6, slow = 6e6;  // bytes/s
constexpr std::int64_t tokens = 32;

PacedRates rates_with(double comm) {
  return {.up = 40e6,
          .down = 30e6,
          .compute = 1e9,
          .update = 6e6,
          .gather = comm,
          .reduce = comm,
          .read = 120e6,
          .write = 100e6};
}

struct Case {
  int world, stage;
  std::string placement;
  double comm;
  std::function<void(RunConfig&)> adjust;

  std::string name() const {
    return fmt::format("{} ranks, stage {}, {}, {:.0f} MB/s", world, stage, placement, comm / 1e6);
  }
};

void state_on(RunConfig& config, const TierFractions& where) {
  all_on(config, cpu);
  optimizer_on(config, where);
}

std::vector<Case> cases() {
  const auto all_gpu = [](RunConfig& c) { all_on(c, gpu); };
  const auto all_cpu = [](RunConfig& c) { all_on(c, cpu); };
  const auto state_cpu = [](RunConfig& c) { all_on(c, gpu), optimizer_on(c, cpu); };
  const auto state_nvme = [](RunConfig& c) { state_on(c, nvme); };
  const auto mixed = [](RunConfig& c) { all_on(c, {0.3, 0.4, 0.3}), slots(c, 3); };
  const auto cpu_slots = [](int count) {
    return [=](RunConfig& c) { all_on(c, cpu), slots(c, count); };
  };
  const auto accumulated = [](int micro_batches, int group) {
    return [=](RunConfig& c) { all_on(c, cpu), accumulate(c, micro_batches, group); };
  };
  const auto during_backward = [](RunConfig& c) {
    all_on(c, cpu), c.max_grad_norm = 0, c.offload.update_order = "during_backward";
  };
  return {
      {2, 3, "all gpu", fast, all_gpu},
      {2, 3, "all gpu", even, all_gpu},
      {2, 3, "all gpu", slow, all_gpu},
      {2, 0, "all gpu", even, all_gpu},
      {2, 1, "all cpu", even, all_cpu},
      {2, 2, "weights gpu, state cpu", even, state_cpu},
      {2, 3, "all cpu", fast, all_cpu},
      {2, 3, "all cpu", even, all_cpu},
      {2, 3, "all cpu, 4 slots", even, cpu_slots(4)},
      {2, 3, "all cpu, 4 slots", slow, cpu_slots(4)},
      {2, 3, "all cpu, during backward", even, during_backward},
      {2, 3, "all cpu, 3 horizontal", even, accumulated(3, 1)},
      {2, 3, "all cpu, 3 vertical", even, accumulated(3, 3)},
      {2, 2, "state nvme", fast, state_nvme},
      {2, 3, "mixed, 3 slots", even, mixed},
      {4, 0, "all cpu", fast, all_cpu},
      {4, 1, "weights gpu, state cpu", even, state_cpu},
      {4, 2, "all cpu", even, all_cpu},
      {4, 3, "all gpu", fast, all_gpu},
      {4, 3, "all cpu, 4 slots", even, cpu_slots(4)},
      {4, 3, "all cpu", slow, all_cpu},
      {4, 3, "state nvme", even, state_nvme},
      {4, 3, "all cpu, 3 horizontal", fast, accumulated(3, 1)},
  };
}

// One run, as a share of its step where it says so.
struct Outcome {
  double step_predicted, step_measured;
  double busy_predicted, busy_measured;
  double exposed_predicted, exposed_measured;

  explicit Outcome(const PacedResult& result)
      : step_predicted(result.predicted_seconds()),
        step_measured(result.measured_seconds()),
        busy_predicted(result.predicted().use.busy[comm_index]),
        busy_measured(result.measured_busy(Resource::comm)),
        exposed_predicted(result.predicted().use.waits[comm_index]),
        exposed_measured(result.measured_wait(Resource::comm)) {}

  bool is_accurate(const AccuracyOptions& options) const {
    return options.is_accurate(step_predicted, step_measured) &&
           std::abs(exposed_predicted - exposed_measured) <= options.tolerance * step_measured;
  }

 private:
  static constexpr auto comm_index = static_cast<std::size_t>(Resource::comm);
};

TextTable empty_table() {
  constexpr auto right = TextTable::Align::right;
  return TextTable({{"configuration"},
                    {"predicted", right},
                    {"measured", right},
                    {"predicted/measured", right},
                    {"comm busy, predicted", right},
                    {"measured", right},
                    {"exposed, predicted", right},
                    {"measured", right},
                    {"losses"}});
}

std::vector<std::string> row(const Case& what, const Outcome& outcome, bool same_losses) {
  const auto seconds = [](double value) { return fmt::format("{:.3f} s", value); };
  return {what.name(),
          seconds(outcome.step_predicted),
          seconds(outcome.step_measured),
          fmt::format("{:.3f}", outcome.step_predicted / outcome.step_measured),
          seconds(outcome.busy_predicted),
          seconds(outcome.busy_measured),
          seconds(outcome.exposed_predicted),
          seconds(outcome.exposed_measured),
          same_losses ? "same" : "NOT THE SAME"};
}

int run_bench(const AccuracyOptions& options) {
  TextTable table = empty_table();
  KnownLosses known;
  bool sound = true;
  for (const Case& what : cases()) {
    if (!options.asks_for(what.name())) continue;
    const PacedTraining training(rates_with(what.comm), options.steps, tokens);
    RunConfig config = training.base();
    config.world = what.world;
    config.zero_stage = what.stage;
    what.adjust(config);
    const PacedResult result = training.run(config);
    const Outcome outcome(result);
    const bool same = known.same(config, result.losses);
    sound = sound && same && outcome.is_accurate(options);
    table.add_row(row(what, outcome, same));
    fmt::print(stderr, "{}: {:.3f}\n", what.name(), outcome.step_predicted / outcome.step_measured);
  }
  fmt::print("{}", table.text());
  return sound ? 0 : 1;
}

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) {
  return strata::bench::run_with_options(
      "Predicted against measured overlap of collectives on a slowed host device", argc, argv,
      strata::bench::run_bench);
}
