#include "strata/measure/gpu_bench.hpp"

#include <fmt/format.h>

#include <utility>

#include "bench_accelerator.hpp"
#include "bench_threads.hpp"
#include "compute_bench.hpp"
#include "link_bench.hpp"
#include "machine_text.hpp"
#include "memory_pass_bench.hpp"
#include "pass_bench.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"
#include "update_bench.hpp"

namespace strata {
namespace {

constexpr double measured_s_min = 1e-3, measured_s_max = 3600;
// Of all seconds, before anything is measured: a GPU that did nothing runs at a low clock.
constexpr double warm_up_share = 0.05;
constexpr std::int64_t tiny_product = 16;
constexpr std::size_t num_links = 3;

struct ProductPlan {
  ProductPass pass = ProductPass::forward;
  DType dtype = DType::bf16;
  ProductSize size;
};

const char* pass_name(ProductPass pass) {
  if (pass == ProductPass::forward) return "forward";
  return pass == ProductPass::backward_input ? "backward input" : "backward weight";
}

std::uint64_t whole(std::int64_t count) { return static_cast<std::uint64_t>(count); }

// Those of a decoder layer and the head, backward too of the widest in a layer, and squares.
std::vector<ProductPlan> products_of(const GpuBenchSizes& sizes) {
  const std::int64_t t = sizes.tokens, h = sizes.hidden, f = sizes.ffn;
  std::vector<ProductPlan> plans;
  for (const ProductSize& size :
       {ProductSize{t, h, h}, {t, h, sizes.kv}, {t, h, f}, {t, f, h}, {t, h, sizes.vocabulary}})
    plans.push_back({ProductPass::forward, DType::bf16, size});
  for (const ProductPass pass : {ProductPass::backward_input, ProductPass::backward_weight})
    plans.push_back({pass, DType::bf16, {t, h, f}});
  for (const std::int64_t n : sizes.squares)
    plans.push_back({ProductPass::forward, DType::bf16, {n, n, n}});
  const std::int64_t n = sizes.f32_square;
  plans.push_back({ProductPass::forward, DType::f32, {n, n, n}});
  return plans;
}

BenchAccelerator open_accelerator(const GpuBenchOptions& options) {
  if (options.gpu) return open_gpu(gpu_facts(read_cuda_devices(), *options.gpu));
  return host_accelerator(BenchThreads(options.num_threads).make_kernels());
}

MeasuredDevice describe_gpu(int ordinal, const Device& device) {
  const CudaInventory inventory = read_cuda_devices();
  const CudaDeviceFacts gpu = gpu_facts(inventory, ordinal);
  return {.name = gpu.name,
          .ordinal = gpu.ordinal,
          .compute = fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor),
          .pci_address = gpu.pci_address,
          .memory_bytes = gpu.memory_bytes,
          .usable_bytes = device.info().memory_bytes,
          .sms = gpu.num_multiprocessors,
          .copy_engines = gpu.num_copy_engines,
          .driver_version = inventory.driver_version,
          .runtime_version = inventory.runtime_version};
}

MeasuredDevice describe_host(const Device& device) {
  const Topology topology = read_topology();
  MeasuredDevice host;
  host.name = device.info().name;
  host.memory_bytes = topology.memory_bytes;
  host.usable_bytes = topology.available_memory_bytes;
  return host;
}

void check_gpu_options(const GpuBenchOptions& options) {
  check_repeats(options.repeats);
  if (!(options.seconds >= measured_s_min && options.seconds <= measured_s_max))
    throw ConfigError(fmt::format("--seconds {}: {} to {} are possible", options.seconds,
                                  measured_s_min, measured_s_max));
}

class GpuBench {
 public:
  explicit GpuBench(const GpuBenchOptions& options)
      : options_(options),
        products_(products_of(options.sizes)),
        layouts_(all_state_layouts(UpdateRule::adamw)),
        passes_(memory_passes(options.sizes)),
        progress_(options.watch),
        accelerator_(open_accelerator(options)),
        timer_(accelerator_.device(), accelerator_.kernels(),
               {options.repeats, options.seconds / static_cast<double>(num_samples())}) {}

  GpuReport run() {
    describe();
    progress_.plan(static_cast<double>(num_steps()));
    warm_up();
    bench_links();
    bench_memory_copies();
    for (const ProductPlan& product : products_) bench_product(product);
    for (const GpuBenchAttention& size : options_.sizes.attention) bench_attention(size);
    for (const AdamLayout& layout : layouts_) bench_update(layout);
    for (const MemoryPass& pass : passes_) bench_pass(pass);
    bench_launches();
    return std::move(report_);
  }

 private:
  // Of the timer: attention and launches are two each.
  std::size_t num_timed() const {
    return 1 + products_.size() + 2 * options_.sizes.attention.size() + layouts_.size() +
           passes_.size() + 2;
  }
  std::size_t num_samples() const {
    return num_timed() * static_cast<std::size_t>(options_.repeats + 1);
  }
  std::size_t num_steps() const { return 1 + num_links + num_timed(); }

  void describe() {
    report_.started_at = utc_now_text();
    report_.kernel = kernel_text();
    report_.cpu = processor_text();
    report_.kernels = accelerator_.kernels().name();
    report_.repeats = options_.repeats;
    report_.sample_seconds = options_.seconds / static_cast<double>(num_samples());
    const Device& device = accelerator_.device();
    report_.device = options_.gpu ? describe_gpu(*options_.gpu, device) : describe_host(device);
    if (!options_.gpu)
      report_.notes.emplace_back("this is the host standing in for a GPU, in small sizes");
  }

  void warm_up() {
    progress_.begin("warming up", 1);
    KernelTimer timer(accelerator_.device(), accelerator_.kernels(),
                      {1, warm_up_share * options_.seconds});
    const std::int64_t n = options_.sizes.squares.front();
    ProductBench(timer, DType::bf16, {n, n, n}).time(ProductPass::forward);
  }

  void bench_links() {
    const std::uint64_t bytes = options_.sizes.copy_bytes;
    LinkRates rates = bench_link(accelerator_.device(), bytes, options_.repeats, progress_);
    report_.links = {bytes, std::move(rates.up), std::move(rates.down), std::move(rates.both)};
  }

  void bench_memory_copies() {
    progress_.begin("copies within the device's memory", 1);
    report_.copy_bytes = options_.sizes.copy_bytes;
    report_.memory_bytes_per_s = device_copy_rates(timer_, report_.copy_bytes);
  }

  void bench_product(const ProductPlan& plan) {
    const auto [t, k, n] = plan.size;
    const std::string dtype(dtype_name(plan.dtype));
    progress_.begin(fmt::format("{} product, {} x {} x {}", dtype, t, n, k), 1);
    TimedCall timed = ProductBench(timer_, plan.dtype, plan.size).time(plan.pass);
    report_.matmul.push_back({pass_name(plan.pass), dtype, whole(t), whole(n), whole(k),
                              timed.flops, std::move(timed.seconds)});
  }

  void bench_attention(const GpuBenchAttention& size) {
    const auto [t, heads, kv_heads, head_dim] = size;
    progress_.begin(fmt::format("attention, {} tokens, heads of {}", t, head_dim), 2);
    TimedAttention timed = time_attention(timer_, DType::bf16, {t, heads, kv_heads, head_dim});
    report_.attention.push_back({"bf16", whole(t), whole(heads), whole(kv_heads), whole(head_dim),
                                 timed.forward.flops, timed.backward.flops,
                                 std::move(timed.forward.seconds),
                                 std::move(timed.backward.seconds)});
  }

  void bench_update(const AdamLayout& layout) {
    progress_.begin("adamw " + state_layout_name(layout), 1);
    const std::int64_t count = options_.sizes.parameters;
    TimedCall timed = time_update(timer_, layout, count);
    report_.adam.push_back({state_layout_name(layout), whole(count),
                            update_pass_bytes(layout) * static_cast<double>(count),
                            std::move(timed.seconds)});
  }

  void bench_pass(const MemoryPass& pass) {
    progress_.begin(pass.name, 1);
    TimedCall timed = pass.time(timer_);
    report_.passes.push_back(
        {pass.name, whole(pass.rows), whole(pass.width), timed.bytes, std::move(timed.seconds)});
  }

  void bench_launches() {
    progress_.begin("launches", 2);
    report_.launch_seconds = kernel_call_seconds(timer_);
    const ProductSize tiny{tiny_product, tiny_product, tiny_product};
    report_.matmul_launch_seconds =
        ProductBench(timer_, DType::bf16, tiny).time(ProductPass::forward).seconds;
  }

  const GpuBenchOptions& options_;
  const std::vector<ProductPlan> products_;
  const std::vector<AdamLayout> layouts_;
  const std::vector<MemoryPass> passes_;
  BenchProgress progress_;
  BenchAccelerator accelerator_;
  KernelTimer timer_;
  GpuReport report_;
};

}  // namespace

GpuBenchSizes host_bench_sizes() {
  GpuBenchSizes sizes;
  sizes.tokens = 128;
  sizes.hidden = 256;
  sizes.kv = 64;
  sizes.ffn = 768;
  sizes.vocabulary = 2048;
  sizes.squares = {256, 512};
  sizes.f32_square = 256;
  sizes.attention = {{256, 8, 2, 64}, {256, 8, 2, 128}};
  sizes.parameters = 1 << 20;
  sizes.pass_rows = 512;
  sizes.logit_rows = 128;
  sizes.copy_bytes = 16 << 20;
  return sizes;
}

GpuReport bench_gpu(const GpuBenchOptions& options) {
  check_gpu_options(options);
  return GpuBench(options).run();
}

}  // namespace strata
