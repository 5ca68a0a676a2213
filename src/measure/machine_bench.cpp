#include "strata/measure/machine_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "bench_threads.hpp"
#include "comm_bench.hpp"
#include "compute_bench.hpp"
#include "known_accelerators.hpp"
#include "link_bench.hpp"
#include "machine_bench_gpus.hpp"
#include "machine_text.hpp"
#include "nvme_report_parts.hpp"
#include "pass_bench.hpp"
#include "profile_rounding.hpp"
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
constexpr double host_sample_seconds = 2e-3, gpu_sample_seconds = 2e-2;
// A collective's start on one node, as configs/machines have it.
constexpr double assumed_collective_seconds = 20e-6;

void check_widths(const MachineBenchOptions& options) {
  if (options.widths.empty() || options.widths.size() > widths_max)
    throw ConfigError(fmt::format("--widths: 1 to {} are possible", widths_max));
  for (const std::int64_t width : options.widths)
    if (width < width_min || width > width_max)
      throw ConfigError(
          fmt::format("--widths {}: {} to {} are possible", width, width_min, width_max));
}

// What products and collectives take of the host standing in.
std::uint64_t host_bytes(const MachineBenchOptions& options, int ranks) {
  if (options.gpu) return 0;
  const std::uint64_t comm =
      ranks > 1 ? 2 * static_cast<std::uint64_t>(ranks) * options.array_bytes : 0;
  return std::max(comm, product_bytes(product_sizes(options.widths, options.tokens)));
}

void check_options(const MachineBenchOptions& options) {
  check_repeats(options.repeats);
  check_widths(options);
  const int ranks = options.ranks.value_or(1);
  if (ranks < 1 || ranks > ranks_max)
    throw ConfigError(fmt::format("--ranks {}: 1 to {} are possible", ranks, ranks_max));
  for (const std::int64_t tokens : {options.tokens, options.attention_tokens})
    if (tokens < 1 || tokens > tokens_max)
      throw ConfigError(fmt::format("{} tokens: 1 to {} are possible", tokens, tokens_max));
  check_free_memory(std::max(host_bytes(options, ranks), 4 * options.array_bytes),
                    "give a smaller --size");
}

const PassResult& result_named(const PassReport& report, const std::string& pass) {
  const auto found = std::ranges::find(report.results, pass, &PassResult::pass);
  ensure(found != report.results.end());
  return *found;
}

double drive_rate(const NvmeReport& report, NvmePattern pattern, const std::string& path) {
  const NvmeResult* result = find_nvme_result(report.results, pattern, path);
  return result == nullptr ? 0 : result->bytes_per_s.median();
}

double drive_new_file_rate(const NvmeReport& report, const std::string& path) {
  const NvmeResult* result = find_nvme_result(report.results, NvmePattern::write, path);
  const bool is_known = result != nullptr && result->new_file_bytes_per_s;
  return is_known ? result->new_file_bytes_per_s->median() : 0;
}

class MachineBench {
 public:
  MachineBench(const MachineBenchOptions& options, std::optional<BenchGpus> gpus)
      : options_(options),
        topology_(read_topology()),
        threads_(options.num_threads),
        gpus_(gpus ? std::move(gpus->alike) : std::vector<CudaDeviceFacts>()),
        accelerator_(gpus ? std::move(gpus->first) : host_accelerator(threads_.make_kernels())) {}

  MachineProfile run() {
    describe();
    bench_drives();
    bench_host_memory();
    bench_updates();
    bench_rest();
    if (on_host() && machine_.ranks > 1) share_accelerator();
    round_profile(machine_);
    return std::move(machine_);
  }

 private:
  // Of the part of the whole that comes next, and takes `share` of it.
  BenchWatch part(double share) {
    const double before = std::exchange(done_, done_ + share);
    const auto progress = [this, before, share](const std::string& what, double done) {
      if (options_.watch.progress) options_.watch.progress(what, before + share * done);
    };
    return {progress, options_.watch.stop};
  }

  void measured(const std::string& key, const std::string& what) {
    machine_.sources[key] =
        fmt::format("measured {} by {}: {}", options_.date, options_.command, what);
  }

  bool on_host() const { return gpus_.empty(); }

  void describe() {
    machine_.name = fmt::format("{} ({} cores)", processor_name(), topology_.usable_cores);
    machine_.host.cores = topology_.usable_cores;
    measured("host.cores", "cores that this process may use");
    on_host() ? describe_host() : describe_gpus();
  }
  void describe_host() {
    const std::uint64_t free = topology_.available_memory_bytes;
    const std::uint64_t device = options_.gpu_limit.value_or(whole_megabytes(free / 2));
    if (device == 0 || device >= free)
      throw ConfigError(
          fmt::format("--gpu-limit {}: of the {} of memory that is free something "
                      "must be left for the host",
                      format_bytes(device), format_bytes(free)));
    machine_.ranks = options_.ranks.value_or(1);
    machine_.accelerator.name = host_accelerator_name;
    machine_.accelerator.memory_bytes = device / static_cast<std::uint64_t>(machine_.ranks);
    machine_.host.memory_bytes = whole_megabytes(free - device);
    measured("accelerator.memory_bytes", options_.gpu_limit ? "each rank's share of --gpu-limit"
                                                            : "each rank's share of half of the "
                                                              "memory that was free");
    measured("host.memory_bytes", "the rest of the memory that was free");
  }
  void describe_gpus() {
    const int found = static_cast<int>(gpus_.size());
    machine_.ranks = options_.ranks.value_or(found);
    if (machine_.ranks > found)
      throw ConfigError(fmt::format("--ranks {}: this machine has {} x {}", machine_.ranks, found,
                                    gpus_.front().name));
    machine_.name += fmt::format(", {} x {}", machine_.ranks, gpus_.front().name);
    machine_.accelerator.name = gpus_.front().name;
    machine_.accelerator.memory_bytes = gpu_memory_bytes();
    machine_.host.memory_bytes = whole_megabytes(topology_.available_memory_bytes);
    measured("accelerator.memory_bytes", options_.gpu_limit
                                             ? "--gpu-limit"
                                             : "free before the measurement, kernels' own apart");
    measured("host.memory_bytes", "the memory that was free");
  }
  std::uint64_t gpu_memory_bytes() {
    const std::uint64_t free = whole_megabytes(accelerator_.free_bytes());
    const std::uint64_t limit = options_.gpu_limit.value_or(free);
    if (limit == 0 || limit > free)
      throw ConfigError(fmt::format("--gpu-limit {}: {} are free on {}", format_bytes(limit),
                                    format_bytes(free), gpus_.front().name));
    return limit;
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
    bench.watch = part(nvme_share);
    const NvmeReport report = bench_nvme(bench);
    for (const std::string& path : options_.nvme_paths) add_drive(report, path);
  }
  void add_drive(const NvmeReport& report, const std::string& path) {
    const std::string prefix = fmt::format("drives[{}].", machine_.drives.size());
    DriveProfile drive;
    drive.bytes = whole_megabytes(read_file_system(path).free_bytes);
    drive.read_bytes_per_s = drive_rate(report, NvmePattern::read, path);
    drive.write_bytes_per_s = drive_rate(report, NvmePattern::write, path);
    drive.new_file_bytes_per_s = drive_new_file_rate(report, path);
    drive.mixed_bytes_per_s = drive_rate(report, NvmePattern::mixed, path);
    machine_.drives.push_back(drive);
    measured(prefix + "bytes", "free on " + path);
    const std::string how = fmt::format("{} at {} x {}", path,
                                        format_bytes(report.best_block_bytes), report.best_depth);
    for (const char* key : {"read_bytes_per_s", "write_bytes_per_s", "mixed_bytes_per_s"})
      measured(prefix + key, how);
    measured(prefix + "new_file_bytes_per_s", how + ", into new files until they were durable");
  }

  void bench_host_memory() {
    MemoryBenchOptions bench;
    bench.array_bytes = options_.array_bytes;
    bench.threads = {threads_.num_threads()};
    bench.repeats = options_.repeats;
    bench.pings = Pings::none;
    bench.watch = part(memory_share);
    const PassReport report = bench_memory(bench);
    const auto rate = [&](const char* pass) {
      return result_named(report, pass).bytes_per_s().median();
    };
    machine_.host.memory_bytes_per_s = rate("triad, streamed");
    measured("host.memory_bytes_per_s", "STREAM triad, streamed stores, " + all_threads());
    if (!on_host()) return;
    machine_.accelerator.memory_bytes_per_s = rate("copy, streamed");
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
    bench.watch = part(adam_share);
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
    BenchProgress progress(part(1 - done_));
    const auto sizes = product_sizes(options_.widths, options_.tokens);
    const bool has_collectives = on_host() && machine_.ranks > 1;
    progress.plan(static_cast<double>(2 * sizes.size() + (on_host() ? 5 : 6) + has_collectives));
    KernelTimer timer(accelerator_.device(), accelerator_.kernels(),
                      {options_.repeats, on_host() ? host_sample_seconds : gpu_sample_seconds});
    bench_compute(timer, sizes, progress);
    if (!on_host()) bench_gpu_memory(timer, progress);
    bench_copies(progress);
    if (has_collectives) bench_collectives(progress);
    if (!on_host() && machine_.ranks > 1) assume_collectives();
  }
  std::string by() const {
    return on_host() ? all_threads() : fmt::format("device {}", gpus_.front().ordinal);
  }

  void bench_compute(KernelTimer& timer, const std::vector<ProductSize>& sizes,
                     BenchProgress& progress) {
    AcceleratorProfile& device = machine_.accelerator;
    device.bf16 = product_rates(timer, DType::bf16, sizes, progress);
    device.f32 = product_rates(timer, DType::f32, sizes, progress);
    const std::string products =
        fmt::format("forward and backward products of {} tokens, {}", options_.tokens, by());
    measured("accelerator.bf16", products);
    measured("accelerator.f32", products);
    tell_peak();
    progress.begin(fmt::format("attention over {} tokens", options_.attention_tokens), 1);
    device.attention_efficiency =
        attention_efficiency(timer, DType::bf16,
                             {options_.attention_tokens, options_.attention_heads,
                              options_.attention_kv_heads, options_.attention_head_dim},
                             device.bf16);
    measured("accelerator.attention_efficiency",
             fmt::format("over {} tokens in bf16", options_.attention_tokens));
    progress.begin("kernel calls", 1);
    device.seconds_per_call = kernel_call_seconds(timer).median();
    measured("accelerator.seconds_per_call", "an addition of one element");
  }
  void tell_peak() {
    AcceleratorProfile& device = machine_.accelerator;
    if (const auto known = known_peak(device.name)) {
      device.peak_flops_per_s = known->flops_per_s;
      machine_.sources["accelerator.peak_flops_per_s"] = known->source;
      return;
    }
    device.peak_flops_per_s =
        std::ranges::max(device.bf16, {}, &MatmulRate::flops_per_s).flops_per_s;
    measured("accelerator.peak_flops_per_s", "the best rate of bf16 products");
  }
  void bench_gpu_memory(KernelTimer& timer, BenchProgress& progress) {
    progress.begin("copies within the device's memory", 1);
    machine_.accelerator.memory_bytes_per_s =
        device_copy_rates(timer, options_.array_bytes).median();
    measured("accelerator.memory_bytes_per_s", "copies within its memory, " + by());
  }
  void bench_copies(BenchProgress& progress) {
    machine_.link =
        bench_link(accelerator_.device(), options_.array_bytes, options_.repeats, progress)
            .profile();
    const std::string how = "copies by one thread each way" + (on_host() ? "" : ", " + by());
    for (const char* key : {"up_bytes_per_s", "down_bytes_per_s", "both_bytes_per_s"})
      measured(std::string("link.") + key, how);
  }
  void bench_collectives(BenchProgress& progress) {
    MachineBenchRun run{progress, options_.repeats, threads_.num_threads()};
    machine_.comm = bench_comm(machine_.ranks, options_.array_bytes, run);
    for (const char* key : {"gather_bytes_per_s", "reduce_bytes_per_s", "seconds_per_call"})
      measured(std::string("comm.") + key, fmt::format("among {} threads", machine_.ranks));
  }
  // The least that GPUs of one machine have between them.
  void assume_collectives() {
    const double slower = std::min(machine_.link.up_bytes_per_s, machine_.link.down_bytes_per_s);
    machine_.comm = {slower, slower, assumed_collective_seconds};
    for (const char* key : {"gather_bytes_per_s", "reduce_bytes_per_s"})
      machine_.sources[std::string("comm.") + key] =
          "assumed: as the link to the host; collectives between GPUs are not measured yet";
    machine_.sources["comm.seconds_per_call"] = "assumed: a collective's start on one node";
  }

  // Ranks stand side by side on the threads that were measured together.
  void share_accelerator() {
    AcceleratorProfile& rank = machine_.accelerator;
    for (std::vector<MatmulRate>* rates : {&rank.bf16, &rank.f32})
      for (MatmulRate& rate : *rates) rate.flops_per_s /= machine_.ranks;
    rank.peak_flops_per_s /= machine_.ranks;
    rank.memory_bytes_per_s /= machine_.ranks;
    for (const char* key : {"bf16", "f32", "memory_bytes_per_s"})
      machine_.sources[std::string("accelerator.") + key] +=
          fmt::format("; one of {} ranks has its share", machine_.ranks);
  }

  const MachineBenchOptions& options_;
  const Topology topology_;
  const BenchThreads threads_;
  const std::vector<CudaDeviceFacts> gpus_;  // empty: the host stands in
  BenchAccelerator accelerator_;
  double done_ = 0;
  MachineProfile machine_;
};

}  // namespace

MachineBenchOptions gpu_machine_options(int gpu) {
  MachineBenchOptions options;
  options.gpu = gpu;
  options.widths = {256, 1024, 2048, 4096, 8192};
  options.tokens = 4096;
  options.attention_tokens = 4096;
  options.attention_heads = 32;
  options.attention_kv_heads = 8;
  options.attention_head_dim = 128;
  return options;
}

MachineProfile bench_machine(const MachineBenchOptions& options) {
  check_options(options);
  if (!options.gpu) return MachineBench(options, std::nullopt).run();
  return bench_machine_with(options, open_gpus(read_cuda_devices(), *options.gpu));
}

MachineProfile bench_machine_with(const MachineBenchOptions& options, BenchGpus gpus) {
  check_options(options);
  return MachineBench(options, std::move(gpus)).run();
}

}  // namespace strata
