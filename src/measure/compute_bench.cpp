#include "compute_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strata/core/bytes.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

constexpr std::int64_t width_multiple = 64;
constexpr std::int64_t num_heads = 8, num_pair_heads = 2, head_dim = 64;

// Memory of its own with values near 1/8 that differ: neither denormal nor all alike.
class BenchTensor {
 public:
  BenchTensor(Device& device, DType dtype, Shape shape)
      : slab_(device.allocate(static_cast<std::uint64_t>(storage_bytes(dtype, shape.count())))),
        view_{slab_.data(), dtype, shape} {
    for (std::int64_t i = 0; i < shape.count(); ++i) set(i);
  }
  operator TensorView() const { return view_; }

 private:
  void set(std::int64_t i) {
    const float value = 0.125f + static_cast<float>(i % 61) / 1024;
    if (view_.dtype == DType::bf16) view_.as<bfloat16>()[i] = to_bfloat16(value);
    if (view_.dtype == DType::f32) view_.as<float>()[i] = value;
    if (view_.dtype == DType::i32) view_.as<std::int32_t>()[i] = 0;  // one document
  }

  Slab slab_;
  TensorView view_;
};

struct BenchStream {
  std::unique_ptr<Device> device = make_host_device({});
  std::unique_ptr<Stream> stream = device->make_stream("bench");
};

double product_seconds(Kernels& kernels, DType dtype, const ProductSize& size, int repeats) {
  const BenchStream host;
  const BenchTensor x(*host.device, dtype, {size.t, size.k}),
      w(*host.device, dtype, {size.n, size.k}), y(*host.device, dtype, {size.t, size.n});
  Stream& stream = *host.stream;
  const double forward =
      call_seconds([&] { kernels.linear_forward(x, w, {}, y, Accumulate::no, stream); }, repeats);
  const double input = call_seconds(
      [&] { kernels.linear_backward_input(y, w, x, Accumulate::no, stream); }, repeats);
  const double weight = call_seconds(
      [&] { kernels.linear_backward_weight(y, x, w, Accumulate::no, stream); }, repeats);
  return (forward + input + weight) / 3;
}

struct AttentionTimes {
  double forward = 0, backward = 0;
};

AttentionTimes attention_times(Kernels& kernels, DType dtype, std::int64_t t, int repeats) {
  const BenchStream host;
  const auto tensor = [&](std::int64_t heads) {
    return BenchTensor(*host.device, dtype, {t, heads, head_dim});
  };
  const BenchTensor q = tensor(num_heads), k = tensor(num_pair_heads), v = tensor(num_pair_heads),
                    out = tensor(num_heads), dout = tensor(num_heads), dq = tensor(num_heads),
                    dk = tensor(num_pair_heads), dv = tensor(num_pair_heads),
                    starts(*host.device, DType::i32, {t}),
                    lse(*host.device, DType::f32, {num_heads, t});
  const Slab scratch = host.device->allocate(
      kernels.attention_scratch_bytes(t, num_heads, num_pair_heads, head_dim));
  const AttentionArgs args{.q_tqd = q,
                           .k_tgd = k,
                           .v_tgd = v,
                           .document_start_t = starts,
                           .scale = 1 / std::sqrt(static_cast<float>(head_dim)),
                           .out_tqd = out,
                           .lse_qt = lse,
                           .dout_tqd = dout,
                           .dq_tqd = dq,
                           .dk_tgd = dk,
                           .dv_tgd = dv,
                           .scratch = {scratch.data(), scratch.bytes()}};
  Stream& stream = *host.stream;
  return {call_seconds([&] { kernels.attention_forward(args, stream); }, repeats),
          call_seconds([&] { kernels.attention_backward(args, stream); }, repeats)};
}

}  // namespace

double ProductSize::flops() const {
  return 2 * static_cast<double>(t) * static_cast<double>(k) * static_cast<double>(n);
}

std::vector<ProductSize> product_sizes(std::span<const std::int64_t> widths, std::int64_t tokens) {
  std::vector<ProductSize> sizes;
  for (const std::int64_t width : widths) {
    const std::int64_t wide = ceil_div(width * 8 / 3, width_multiple) * width_multiple;
    sizes.push_back({tokens, width, width});
    sizes.push_back({tokens, width, wide});
  }
  const auto less = [](const ProductSize& a, const ProductSize& b) {
    return a.flops() < b.flops();
  };
  const auto same = [](const ProductSize& a, const ProductSize& b) {
    return a.flops() == b.flops();
  };
  std::ranges::sort(sizes, less);
  sizes.erase(std::unique(sizes.begin(), sizes.end(), same), sizes.end());
  return sizes;
}

std::uint64_t product_bytes(std::span<const ProductSize> sizes) {
  std::int64_t most = 0;
  for (const ProductSize& s : sizes) most = std::max(most, s.t * s.k + s.k * s.n + s.t * s.n);
  return static_cast<std::uint64_t>(most) * sizeof(float);
}

std::vector<MatmulRate> product_rates(Kernels& kernels, DType dtype,
                                      std::span<const ProductSize> sizes, MachineBenchRun& run) {
  std::vector<MatmulRate> rates;
  for (const ProductSize& size : sizes) {
    run.progress.begin(
        fmt::format("{} products, {} x {} x {}", dtype_name(dtype), size.t, size.n, size.k), 1);
    rates.push_back(
        {size.flops(), size.flops() / product_seconds(kernels, dtype, size, run.repeats)});
  }
  return rates;
}

double attention_efficiency(Kernels& kernels, DType dtype, std::int64_t tokens,
                            std::span<const MatmulRate> products, MachineBenchRun& run) {
  run.progress.begin(fmt::format("attention over {} tokens", tokens), 1);
  const auto t = static_cast<double>(tokens);
  const double half = t * t * num_heads * head_dim;  // of a product of t x t, which is causal
  const AttentionTimes times = attention_times(kernels, dtype, tokens, run.repeats);
  const double as_products =
      2 * half / rate_at(products, 2 * half) + 5 * half / rate_at(products, 5 * half);
  return as_products / (times.forward + times.backward);
}

double seconds_per_kernel_call(Kernels& kernels, MachineBenchRun& run) {
  run.progress.begin("kernel calls", 1);
  const BenchStream host;
  const BenchTensor a(*host.device, DType::f32, {1}), b(*host.device, DType::f32, {1});
  return call_seconds([&] { kernels.add(a, b, a, *host.stream); }, run.repeats);
}

double rate_at(std::span<const MatmulRate> rates, double flops) {
  const auto above = std::ranges::lower_bound(rates, flops, {}, &MatmulRate::flops);
  if (above == rates.end()) return rates.back().flops_per_s;
  if (above == rates.begin()) return above->flops_per_s;
  const MatmulRate& low = *(above - 1);
  const double share = std::log(flops / low.flops) / std::log(above->flops / low.flops);
  return low.flops_per_s + share * (above->flops_per_s - low.flops_per_s);
}

}  // namespace strata
