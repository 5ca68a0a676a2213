#include "strata/measure/machine_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "bench_threads.hpp"
#include "comm_bench.hpp"
#include "compute_bench.hpp"
#include "link_bench.hpp"
#include "machine_text.hpp"
#include "pass_bench.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/measure/adam_bench.hpp"
#include "strata/measure/memory_bench.hpp"
#include "strata/measure/nvme_bench.hpp"
#include "strata/topology/topology.hpp"

namespace strata {
namespace {

constexpr std::int64_t width_min = 8, width_max = 65536, tokens_max = 65536;
constexpr int ranks_max = 1024;
constexpr std::size_t widths_max = 100;
// Parts of the progress that the benchmarks of their own take.
constexpr double nvme_share = 0.3, memory_share = 0.15, adam_share = 0.25;

void check_widths(const MachineBenchOptions& options) {
  if (options.widths.empty() || options.widths.size() > widths_max)
    throw ConfigError(fmt::format("--widths: 1 to {} are possible", widths_max));
  for (const std::int64_t width : options.widths)
    if (width < width_min || width > width_max)
      throw ConfigError(
          fmt::format("--widths {}: {} to {} are possible", width, width_min, width_max));
}

void check_options(const MachineBenchOptions& options) {
  check_repeats(options.repeats);
  check_widths(options);
  if (options.ranks < 1 || options.ranks > ranks_max)
    throw ConfigError(fmt::format("--ranks {}: 1 to {} are possible", options.ranks, ranks_max));
  for (const std::int64_t tokens : {options.tokens, options.attention_tokens})
    if (tokens < 1 || tokens > tokens_max)
      throw ConfigError(fmt::format("{} tokens: 1 to {} are possible", tokens, tokens_max));
  const auto ranks = static_cast<std::uint64_t>(options.ranks);
  const std::uint64_t comm = options.ranks > 1 ? 2 * ranks * options.array_bytes : 0;
  const std::uint64_t products = product_bytes(product_sizes(options.widths, options.tokens));
  check_free_memory(std::max({products, 4 * options.array_bytes, comm}), "give a smaller --size");
}

const PassResult& result_named(const PassReport& report, const std::string& pass) {
  const auto found = std::ranges::find(report.results, pass, &PassResult::pass);
  ensure(found != report.results.end());
  return *found;
}

std::optional<double> drive_rate(const NvmeReport& report, NvmePattern pattern,
                                 const std::string& path) {
  for (const NvmeResult& result : report.results)
    if (result.pattern == pattern && result.target == path) return result.bytes_per_s.median();
  return std::nullopt;
}

// To four digits: the rest is noise, and files are read by people.
double rounded(double value) { return std::stod(fmt::format("{:.3e}", value)); }

// Whole megabytes, for the same reason.
std::uint64_t whole_megabytes(std::uint64_t bytes) { return bytes / 1'000'000 * 1'000'000; }

void round_rates(std::vector<MatmulRate>& rates) {
  for (MatmulRate& rate : rates) rate.flops_per_s = rounded(rate.flops_per_s);
}

void round_drive(DriveProfile& drive) {
  for (double* rate : {&drive.read_bytes_per_s, &drive.write_bytes_per_s, &drive.mixed_bytes_per_s})
    *rate = rounded(*rate);
}

void round_all(MachineProfile& machine) {
  AcceleratorProfile& accelerator = machine.accelerator;
  for (double* value : {&accelerator.peak_flops_per_s, &accelerator.memory_bytes_per_s,
                        &accelerator.attention_efficiency, &accelerator.seconds_per_call,
                        &machine.link.up_bytes_per_s, &machine.link.down_bytes_per_s,
                        &machine.host.memory_bytes_per_s, &machine.comm.gather_bytes_per_s,
                        &machine.comm.reduce_bytes_per_s, &machine.comm.seconds_per_call})
    *value = rounded(*value);
  round_rates(accelerator.bf16);
  round_rates(accelerator.f32);
  for (auto& [layout, update] : machine.host.updates)
    update.params_per_s = rounded(update.params_per_s);
  for (DriveProfile& drive : machine.drives) round_drive(drive);
  LinkProfile& link = machine.link;
  link.both_bytes_per_s =
      std::min(rounded(link.both_bytes_per_s), link.up_bytes_per_s + link.down_bytes_per_s);
}

class MachineBench {
 public:
  explicit MachineBench(const MachineBenchOptions& options)
      : options_(options), topology_(read_topology()), threads_(options.num_threads) {}

  MachineProfile run() {
    describe();
    bench_drives();
    bench_host_memory();
    bench_updates();
    bench_rest();
    if (options_.ranks > 1) share_accelerator();
    round_all(machine_);
    return std::move(machine_);
  }

 private:
  // Progress of the part of the whole that comes next, and takes `share` of it.
  std::function<void(const std::string&, double)> part(double share) {
    const double before = std::exchange(done_, done_ + share);
    return [this, before, share](const std::string& what, double done) {
      if (options_.progress) options_.progress(what, before + share * done);
    };
  }

  void measured(const std::string& key, const std::string& what) {
    machine_.sources[key] =
        fmt::format("measured {} by {}: {}", options_.date, options_.command, what);
  }

  void describe() {
    const std::uint64_t free = topology_.available_memory_bytes;
    const std::uint64_t device = options_.gpu_limit.value_or(whole_megabytes(free / 2));
    if (device == 0 || device >= free)
      throw ConfigError(
          fmt::format("--gpu-limit {}: of the {} of memory that is free something "
                      "must be left for the host",
                      format_bytes(device), format_bytes(free)));
    machine_.name = fmt::format("{} ({} cores)", processor_name(), topology_.usable_cores);
    machine_.ranks = options_.ranks;
    machine_.accelerator.name = host_accelerator_name;
    machine_.accelerator.memory_bytes = device / static_cast<std::uint64_t>(options_.ranks);
    machine_.host.memory_bytes = whole_megabytes(free - device);
    machine_.host.cores = topology_.usable_cores;
    measured("accelerator.memory_bytes", options_.gpu_limit ? "each rank's share of --gpu-limit"
                                                            : "each rank's share of half of the "
                                                              "memory that was free");
    measured("host.memory_bytes", "the rest of the memory that was free");
    measured("host.cores", "cores that this process may use");
  }
  static std::string processor_name() {
    const std::string name = processor_text();
    return name.empty() ? "this machine" : name;
  }

  void bench_drives() {
    if (options_.nvme_paths.empty()) return;
    NvmeBenchOptions bench;
    bench.paths = options_.nvme_paths;
    bench.file_bytes = options_.nvme_bytes;
    bench.duration_s = options_.nvme_seconds;
    bench.repeats = options_.repeats;
    bench.progress = part(nvme_share);
    bench.stop = options_.stop;
    const NvmeReport report = bench_nvme(bench);
    for (const std::string& path : options_.nvme_paths) add_drive(report, path);
  }
  void add_drive(const NvmeReport& report, const std::string& path) {
    const std::string prefix = fmt::format("drives[{}].", machine_.drives.size());
    DriveProfile drive;
    drive.bytes = whole_megabytes(read_file_system(path).free_bytes);
    drive.read_bytes_per_s = drive_rate(report, NvmePattern::read, path).value_or(0);
    drive.write_bytes_per_s = drive_rate(report, NvmePattern::write, path).value_or(0);
    drive.mixed_bytes_per_s = drive_rate(report, NvmePattern::mixed, path).value_or(0);
    machine_.drives.push_back(drive);
    measured(prefix + "bytes", "free on " + path);
    for (const char* key : {"read_bytes_per_s", "write_bytes_per_s", "mixed_bytes_per_s"})
      measured(prefix + key, fmt::format("{} at {} x {}", path,
                                         format_bytes(report.best_block_bytes), report.best_depth));
  }

  void bench_host_memory() {
    MemoryBenchOptions bench;
    bench.array_bytes = options_.array_bytes;
    bench.threads = {threads_.num_threads()};
    bench.repeats = options_.repeats;
    bench.pings = Pings::none;
    bench.progress = part(memory_share);
    bench.stop = options_.stop;
    const PassReport report = bench_memory(bench);
    const auto rate = [&](const char* pass) {
      return result_named(report, pass).bytes_per_s().median();
    };
    machine_.host.memory_bytes_per_s = rate("triad, streamed");
    machine_.accelerator.memory_bytes_per_s = rate("copy, streamed");
    measured("host.memory_bytes_per_s", "STREAM triad, streamed stores, " + all_threads());
    measured("accelerator.memory_bytes_per_s", "STREAM copy, streamed stores, " + all_threads());
  }
  std::string all_threads() const { return fmt::format("{} threads", threads_.num_threads()); }

  void bench_updates() {
    AdamBenchOptions bench;
    bench.layouts = all_state_layouts(UpdateRule::adamw);
    bench.counts = {options_.parameters};
    bench.threads = {threads_.num_threads()};
    bench.repeats = options_.repeats;
    bench.pings = Pings::none;
    bench.progress = part(adam_share);
    bench.stop = options_.stop;
    const PassReport report = bench_adam(bench);
    for (const AdamLayout& layout : bench.layouts) {
      const std::string name = state_layout_name(layout);
      const PassResult& result = result_named(report, update_pass_name(layout));
      machine_.host.updates[name] = {result.elements_per_s().median()};
      measured("host.updates." + name,
               fmt::format("AdamW of {} parameters, {}", options_.parameters, all_threads()));
    }
  }

  void bench_rest() {
    BenchProgress progress(part(1 - done_), options_.stop);
    const auto sizes = product_sizes(options_.widths, options_.tokens);
    progress.plan(static_cast<double>(2 * sizes.size() + 5 + (options_.ranks > 1 ? 1 : 0)));
    MachineBenchRun run{progress, options_.repeats, threads_.num_threads()};
    bench_compute(sizes, run);
    bench_copies(run);
    if (options_.ranks > 1) bench_collectives(run);
  }
  void bench_compute(const std::vector<ProductSize>& sizes, MachineBenchRun& run) {
    const auto kernels = threads_.make_kernels();
    AcceleratorProfile& host = machine_.accelerator;
    host.bf16 = product_rates(*kernels, DType::bf16, sizes, run);
    host.f32 = product_rates(*kernels, DType::f32, sizes, run);
    host.peak_flops_per_s = std::ranges::max(host.bf16, {}, &MatmulRate::flops_per_s).flops_per_s;
    host.attention_efficiency =
        attention_efficiency(*kernels, DType::bf16, options_.attention_tokens, host.bf16, run);
    host.seconds_per_call = seconds_per_kernel_call(*kernels, run);
    const std::string products = fmt::format("forward and backward products of {} tokens, {}",
                                             options_.tokens, all_threads());
    measured("accelerator.bf16", products);
    measured("accelerator.f32", products);
    measured("accelerator.peak_flops_per_s", "the best rate of bf16 products");
    measured("accelerator.attention_efficiency",
             fmt::format("over {} tokens in bf16", options_.attention_tokens));
    measured("accelerator.seconds_per_call", "an addition of one element");
  }
  void bench_copies(MachineBenchRun& run) {
    machine_.link = bench_link(options_.array_bytes, run);
    for (const char* key : {"up_bytes_per_s", "down_bytes_per_s", "both_bytes_per_s"})
      measured(std::string("link.") + key, "copies by one thread each way");
  }
  void bench_collectives(MachineBenchRun& run) {
    machine_.comm = bench_comm(options_.ranks, options_.array_bytes, run);
    for (const char* key : {"gather_bytes_per_s", "reduce_bytes_per_s", "seconds_per_call"})
      measured(std::string("comm.") + key, fmt::format("among {} threads", options_.ranks));
  }

  // Ranks stand side by side on the threads that were measured together.
  void share_accelerator() {
    AcceleratorProfile& rank = machine_.accelerator;
    for (std::vector<MatmulRate>* rates : {&rank.bf16, &rank.f32})
      for (MatmulRate& rate : *rates) rate.flops_per_s /= options_.ranks;
    rank.peak_flops_per_s /= options_.ranks;
    rank.memory_bytes_per_s /= options_.ranks;
    for (const char* key : {"bf16", "f32", "memory_bytes_per_s"})
      machine_.sources[std::string("accelerator.") + key] +=
          fmt::format("; one of {} ranks has its share", options_.ranks);
  }

  const MachineBenchOptions& options_;
  const Topology topology_;
  const BenchThreads threads_;
  double done_ = 0;
  MachineProfile machine_;
};

}  // namespace

MachineProfile bench_machine(const MachineBenchOptions& options) {
  check_options(options);
  return MachineBench(options).run();
}

}  // namespace strata
