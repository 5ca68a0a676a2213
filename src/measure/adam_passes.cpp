#include "strata/measure/adam_passes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "bench_threads.hpp"
#include "measure/state_touch.hpp"
#include "measure/stream_passes.hpp"
#include "strata/core/bytes.hpp"
#include "strata/device/device.hpp"
#include "strata/program/program.hpp"

namespace strata {
namespace {

constexpr std::uint64_t array_alignment = 2 * MiB;
constexpr double max_norm = 1;

std::uint64_t array_bytes(DType dtype, std::int64_t count) {
  return align_up(static_cast<std::uint64_t>(storage_bytes(dtype, count)), array_alignment);
}

// Zero in the mean, none of them zero or denormal.
float gradient_of(std::int64_t i) {
  const float magnitude = 1e-4f * static_cast<float>(1 + i % 1009);
  return i % 2 == 0 ? magnitude : -magnitude;
}

template <class T>
void fill_gradient(T* gradient, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    if constexpr (std::is_same_v<T, float>) gradient[i] = gradient_of(i);
    if constexpr (std::is_same_v<T, bfloat16>) gradient[i] = to_bfloat16(gradient_of(i));
  }
}

// Elements [begin, end) of a zeroed array, and with the last of them what follows (q8: scales).
void touch_first(const TensorView& array, std::int64_t begin, std::int64_t end) {
  const std::int64_t size = dtype_bytes(array.dtype);
  const std::int64_t to = end == array.count() ? array.bytes() : end * size;
  std::memset(array.as<std::byte>() + begin * size, 0, static_cast<std::size_t>(to - begin * size));
}

}  // namespace

std::uint64_t adam_passes_bytes(const AdamLayout& layout, std::int64_t count) {
  const std::uint64_t moments = array_bytes(layout.moments, count);
  return array_bytes(layout.gradient, count) + array_bytes(layout.master, count) +
         (has_moment2(layout.rule) ? 2 : 1) * moments + array_bytes(DType::bf16, count) +
         array_bytes(DType::f64, ceil_div(count, norm_chunk_elements));
}

struct AdamPasses::Impl {
  Impl(const AdamLayout& layout, std::int64_t count, int num_threads)
      : threads(num_threads),
        pool(threads.make_pool()),
        kernels(threads.make_kernels()),
        device(make_host_device({})),
        stream(device->make_stream("update")),
        slab(device->allocate(adam_passes_bytes(layout, count))),
        decay{0, count} {
    lay_out(layout, count);
    pool->for_chunks(count, bench_chunk_elements,
                     [&](std::int64_t begin, std::int64_t end) { fill(begin, end); });
  }

  TensorView carve(DType dtype, std::int64_t count) {
    TensorView view{slab.data() + used, dtype, {count}};
    used += array_bytes(dtype, count);
    return view;
  }
  void lay_out(const AdamLayout& layout, std::int64_t count) {
    args.rule = layout.rule;
    args.gradient = carve(layout.gradient, count);
    args.master = carve(layout.master, count);
    args.moment1 = carve(layout.moments, count);
    if (has_moment2(layout.rule)) args.moment2 = carve(layout.moments, count);
    args.weight = carve(DType::bf16, count);
    partials = carve(DType::f64, ceil_div(count, norm_chunk_elements));
    args.decays = {&decay, 1};
    args.learning_rate = 1e-4;
    args.weight_decay = 0.01;
    args.step = 0;
  }
  void fill(std::int64_t begin, std::int64_t end) {
    if (args.gradient.dtype == DType::f32) fill_gradient(args.gradient.as<float>(), begin, end);
    if (args.gradient.dtype == DType::bf16) fill_gradient(args.gradient.as<bfloat16>(), begin, end);
    touch_first(args.master, begin, end);
    touch_first(args.moment1, begin, end);
    if (!args.moment2.empty()) touch_first(args.moment2, begin, end);
    touch_first(args.weight, begin, end);
  }
  double gradient_norm() const {
    const auto* sums = partials.as<const double>();
    return std::sqrt(std::accumulate(sums, sums + partials.count(), 0.0));
  }

  BenchThreads threads;
  std::unique_ptr<cpu::Parallel> pool;
  std::unique_ptr<Kernels> kernels;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  Slab slab;
  DecayRange decay;
  UpdateArgs args;
  TensorView partials;
  std::uint64_t used = 0;
};

AdamPasses::AdamPasses(const AdamLayout& layout, std::int64_t count, int num_threads)
    : impl_(std::make_unique<Impl>(layout, count, num_threads)) {}

AdamPasses::~AdamPasses() = default;

void AdamPasses::norm() {
  impl_->kernels->square_sums(impl_->args.gradient, impl_->partials, *impl_->stream);
  impl_->args.gradient_scale = static_cast<float>(std::min(1.0, max_norm / impl_->gradient_norm()));
}

void AdamPasses::update() {
  ++impl_->args.step;
  impl_->kernels->update(impl_->args, *impl_->stream);
}

void AdamPasses::touch_norm() {
  const TensorView& gradient = impl_->args.gradient;
  auto* doubles = gradient.as<double>();
  const std::int64_t per_double = 8 / dtype_bytes(gradient.dtype);
  impl_->pool->for_chunks(
      gradient.count(), bench_chunk_elements, [&](std::int64_t begin, std::int64_t end) {
        run_stream_pass(StreamPass::read, StreamStores::normal, {doubles, nullptr, nullptr},
                        begin / per_double, end / per_double);
      });
}

void AdamPasses::touch_update() {
  impl_->pool->for_chunks(
      impl_->args.master.count(), bench_chunk_elements,
      [&](std::int64_t begin, std::int64_t end) { touch_state(impl_->args, begin, end); });
}

std::span<const std::byte> AdamPasses::memory() const {
  return {impl_->slab.data(), impl_->slab.bytes()};
}

std::span<const bfloat16> AdamPasses::weight() const {
  const TensorView& weight = impl_->args.weight;
  return {weight.as<const bfloat16>(), static_cast<std::size_t>(weight.count())};
}

}  // namespace strata
