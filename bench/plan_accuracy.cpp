// Whether steps take as long as predicted. Trains a small model on the host device with links, a
// drive, compute and optimizer slowed to stated rates (no CPU is burned: everything sleeps out its
// time), under configurations that differ in tiers, schedules, slots and accumulation, and puts the
// simulator's prediction beside what was measured. All runs of one step shape must give the same
// losses. Exits with 1 when a prediction is off by more than --tolerance.
//
//   plan_accuracy [--steps 10] [--tolerance 0.10] [--only NAME]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/paced/paced_engine.hpp"
#include "strata/core/text_table.hpp"
#include "strata/plan/simulate.hpp"
#include "tests/sim/tiny_training.hpp"

namespace strata::bench {
namespace {

// The machine that is emulated.
struct Rates {
  double up = 100e6, down = 80e6;     // bytes/s
  double read = 120e6, write = 80e6;  // bytes/s
  double compute = 6e9;               // flop/s
  double update = 15e6;               // parameters/s
};

struct Case {
  std::string name;
  std::function<void(RunConfig&)> adjust;
};

MachineProfile profile_of(const Rates& rates) {
  constexpr double unlimited = 1e15;
  MachineProfile machine;
  machine.name = "host device, slowed";
  machine.accelerator.name = "host";
  machine.accelerator.memory_bytes = std::uint64_t{1} << 34;
  machine.accelerator.memory_bytes_per_s = unlimited;
  machine.accelerator.peak_flops_per_s = rates.compute;
  machine.accelerator.bf16 = machine.accelerator.f32 = {{1, rates.compute}};
  machine.link = {rates.up, rates.down, 0};
  machine.host.memory_bytes = std::uint64_t{1} << 34;
  machine.host.cores = 1;
  machine.host.memory_bytes_per_s = unlimited;
  for (const char* gradient : {"bf16", "f32"})
    for (const char* rest : {"/f32/f32", "/split/f32"})
      machine.host.updates[std::string(gradient) + rest] = {rates.update};
  machine.drives = {{std::uint64_t{1} << 36, rates.read, rates.write, 0, 0}};
  // Reads and writes do not disturb each other on the emulated drive.
  const double slower = std::min(rates.read, rates.write);
  machine.drives[0].mixed_bytes_per_s = 2 * slower;
  return machine;
}

// How long the emulated machine takes for an op that the device and the drive do not slow down.
double stated_seconds(const Program& program, const Op& op, const Rates& rates) {
  if (op.kind == OpKind::run) return program.flops(program.segment(op.segment)) / rates.compute;
  if (op.kind != OpKind::update || op.lane != Lane::update) return 0;
  const Segment& segment = program.segment(op.segment);
  const Use& master = *program.use_of(segment, Role::master);
  return static_cast<double>(program.tile_count(master.shard, segment.tile)) / rates.update;
}

struct Measured {
  std::int64_t micro_batches = 1;
  double max_grad_norm = 0;
  std::vector<double> losses;
  double step_seconds = 0;
  Simulation predicted;
};

// The mean of the steps after the pipeline has filled.
double steady_seconds(const std::filesystem::path& metrics, std::vector<double>& losses) {
  std::vector<double> seconds;
  std::ifstream file(metrics);
  for (std::string text; std::getline(file, text);) {
    const auto line = nlohmann::json::parse(text);
    if (!line.contains("grad_norm")) continue;
    losses.push_back(line.at("loss").get<double>());
    seconds.push_back(line.at("step_seconds").get<double>());
  }
  const auto steady = std::span(seconds).subspan(2);
  double sum = 0;
  for (const double s : steady) sum += s;
  return sum / static_cast<double>(steady.size());
}

class Accuracy {
 public:
  Accuracy(const Rates& rates, std::int64_t steps) : rates_(rates), machine_(profile_of(rates)) {
    base_ = strata::testing::tiny_config(files());
    base_.max_steps = steps;
    base_.evaluate = false;
    base_.cutoff_len = 128;
    base_.gradient_accumulation_steps = 1;
    base_.offload.tile_bytes = 512 << 10;
  }

  Measured run(const Case& what) {
    RunConfig config = base_;
    config.output_dir = strata::testing::fresh_folder("accuracy");
    config.offload.nvme_paths = {config.output_dir.string()};
    what.adjust(config);
    Measured result;
    result.micro_batches = config.gradient_accumulation_steps;
    result.max_grad_norm = config.max_grad_norm;
    PlannedRun planned = plan_run(config, Purpose::train);
    const Program program = planned.program;
    result.predicted = simulate(program, planned.plan, "train", machine_);
    train(config, std::move(planned), program);
    result.step_seconds = steady_seconds(config.output_dir / "metrics.jsonl", result.losses);
    std::filesystem::remove_all(config.output_dir);
    return result;
  }

 private:
  // Untied, large enough that its bytes take milliseconds per tile and its products little real
  // time.
  static const strata::testing::TrainingFiles& files() {
    static const auto made = [] {
      HfConfig model;
      model.vocab_size = 257;
      model.hidden_size = 256;
      model.intermediate_size = 704;
      model.num_hidden_layers = 6;
      model.num_attention_heads = 4;
      model.num_key_value_heads = 2;
      model.head_dim = 64;
      model.max_position_embeddings = 2048;
      return strata::testing::make_training_files(model, 400, DType::bf16);
    }();
    return made;
  }

  void train(const RunConfig& config, PlannedRun planned, const Program& program) {
    ExecutorOptions options;
    options.after_op = [this, &program](const Op& op, std::int64_t start_ns) {
      const double seconds = stated_seconds(program, op, rates_);
      const std::int64_t left = start_ns + static_cast<std::int64_t>(1e9 * seconds) - now_ns();
      if (left > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(left));
    };
    const auto make_engine = [this](const OffloadConfig& offload) -> std::unique_ptr<IoEngine> {
      return std::make_unique<PacedEngine>(make_offload_engine(offload),
                                           DriveRates{rates_.read, rates_.write});
    };
    const auto make_device = [this](const Plan& plan) {
      return make_host_device({plan.limits.device_bytes, rates_.up, rates_.down});
    };
    Session session(config, std::move(planned), {options, make_engine, make_device});
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> quiet(std::fopen("/dev/null", "w"),
                                                                std::fclose);
    Progress progress(config.output_dir, Style::plain, quiet.get());
    Trainer(config, session, progress).run();
  }

  const Rates rates_;
  const MachineProfile machine_;
  RunConfig base_;
};

constexpr TierFractions gpu{1, 0, 0}, cpu{0, 1, 0}, nvme{0, 0, 1};

void optimizer_on(RunConfig& config, const TierFractions& where) {
  config.offload.master = config.offload.moment1 = config.offload.moment2 = where;
}

void all_on(RunConfig& config, const TierFractions& where) {
  config.offload.weights = config.offload.gradients = config.offload.activations = where;
  optimizer_on(config, where);
}

void accumulate(RunConfig& config, int micro_batches, int group) {
  config.gradient_accumulation_steps = micro_batches;
  config.offload.accumulation_group = group;
}

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
         c.offload.weight_slots = c.offload.gradient_slots = 1;
         c.offload.state_slots = c.offload.staging_slots = 1;
       }},
      {"all nvme, 8 slots of each",
       [](RunConfig& c) {
         all_on(c, nvme);
         c.offload.weight_slots = c.offload.gradient_slots = 8;
         c.offload.state_slots = c.offload.staging_slots = 8;
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

struct BenchOptions {
  std::int64_t steps = 10;
  double tolerance = 0.10;
  std::string only;
};

int run_bench(const BenchOptions& options) {
  constexpr auto right = TextTable::Align::right;
  TextTable table({{"configuration"},
                   {"predicted", right},
                   {"measured", right},
                   {"predicted/measured", right},
                   {"bound", right},
                   {"bound/measured", right},
                   {"bound by"},
                   {"losses"}});
  Accuracy accuracy({}, options.steps);
  bool sound = true;
  std::map<std::pair<std::int64_t, double>, std::vector<double>>
      known;  // losses by shape of a step
  for (const Case& what : cases()) {
    if (!options.only.empty() && what.name != options.only) continue;
    const Measured m = accuracy.run(what);
    const double ratio = m.predicted.step_seconds / m.step_seconds;
    const auto& losses =
        known.emplace(std::pair(m.micro_batches, m.max_grad_norm), m.losses).first->second;
    sound = sound && std::abs(ratio - 1) <= options.tolerance && m.losses == losses;
    table.add_row({what.name, fmt::format("{:.3f} s", m.predicted.step_seconds),
                   fmt::format("{:.3f} s", m.step_seconds), fmt::format("{:.3f}", ratio),
                   fmt::format("{:.3f} s", m.predicted.bound_seconds()),
                   fmt::format("{:.2f}", m.predicted.bound_seconds() / m.step_seconds),
                   std::string(resource_name(m.predicted.bound_by)),
                   m.losses == losses ? "same" : "NOT THE SAME"});
    fmt::print(stderr, "{}: {:.3f}\n", what.name, ratio);
  }
  fmt::print("{}", table.text());
  return sound ? 0 : 1;
}

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) {
  CLI::App app("Predicted against measured step times on a slowed host device");
  strata::bench::BenchOptions options;
  app.add_option("--steps", options.steps, "Steps of each run, the first two not counted");
  app.add_option("--tolerance", options.tolerance, "Largest relative error of a prediction");
  app.add_option("--only", options.only, "One configuration, by its name");
  CLI11_PARSE(app, argc, argv);
  return strata::bench::run_bench(options);
}
