#include "compute_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strata/core/bytes.hpp"

namespace strata {
namespace {

constexpr std::int64_t width_multiple = 64;

double product_seconds(KernelTimer& timer, DType dtype, const ProductSize& size) {
  const ProductBench product(timer, dtype, size);
  double seconds = 0;
  for (const ProductPass pass :
       {ProductPass::forward, ProductPass::backward_input, ProductPass::backward_weight})
    seconds += product.time(pass).seconds.median();
  return seconds / 3;
}

}  // namespace

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

std::vector<MatmulRate> product_rates(KernelTimer& timer, DType dtype,
                                      std::span<const ProductSize> sizes, BenchProgress& progress) {
  std::vector<MatmulRate> rates;
  for (const ProductSize& size : sizes) {
    progress.begin(
        fmt::format("{} products, {} x {} x {}", dtype_name(dtype), size.t, size.n, size.k), 1);
    rates.push_back({size.flops(), size.flops() / product_seconds(timer, dtype, size)});
  }
  return rates;
}

double attention_efficiency(KernelTimer& timer, DType dtype, const AttentionSize& size,
                            std::span<const MatmulRate> products) {
  const TimedAttention timed = time_attention(timer, dtype, size);
  double as_products = 0, measured = 0;
  for (const TimedCall& call : {timed.forward, timed.backward}) {
    as_products += call.flops / rate_at(products, call.flops);
    measured += call.seconds.median();
  }
  return as_products / measured;
}

Samples kernel_call_seconds(KernelTimer& timer) {
  const BenchTensor a = timer.tensor(DType::f32, {1}), b = timer.tensor(DType::f32, {1});
  return timer.time([&](Kernels& kernels, Stream& s) { kernels.add(a, b, a, s); }).seconds;
}

Samples device_copy_rates(KernelTimer& timer, std::uint64_t bytes) {
  const auto half = [&] { return timer.device().allocate(bytes); };
  const Slab source = half(), target = half();
  timer.device().fill(source.data(), bytes, std::byte{1}, timer.stream());
  Samples rates = timer.seconds([&] {
    timer.device().copy(target.data(), source.data(), bytes, CopyKind::device_to_device,
                        timer.stream());
  });
  for (double& value : rates.values) value = 2 * static_cast<double>(bytes) / value;
  return rates;
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
