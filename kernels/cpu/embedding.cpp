#include "kernels/cpu/embedding.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/scratch.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/embedding.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

// row_h = the sum of dout's rows at the positions in the low halves of `uses`, in that order.
void sum_rows(TensorView dout_th, const std::uint64_t* uses, std::int64_t num_uses,
              TensorView row_h) {
  const std::int64_t h = row_h.count();
  with_element(row_h.dtype, [&](auto* type) HWY_ATTR {
    using T = std::remove_pointer_t<decltype(type)>;
    const T* dout = dout_th.as<const T>();
    T* row = row_h.as<T>();
    for_each_vector(0, h, [&](auto d, std::int64_t j) HWY_ATTR {
      auto total = hn::Zero(d);
      for (std::int64_t use = 0; use < num_uses; ++use) {
        const auto position = static_cast<std::int64_t>(uses[use] & 0xffffffffu);
        total = hn::Add(total, load(d, dout + position * h + j));
      }
      store(d, total, row + j);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::cpu {
namespace {

HWY_EXPORT(sum_rows);

constexpr std::int64_t rows_per_task = 64;

void copy_row(TensorView from_nh, std::int64_t from, TensorView to_nh, std::int64_t to) {
  const std::int64_t row_bytes = from_nh.dim(1) * dtype_bytes(from_nh.dtype);
  std::memcpy(to_nh.as<std::byte>() + to * row_bytes,
              from_nh.as<const std::byte>() + from * row_bytes,
              static_cast<std::size_t>(row_bytes));
}

std::uint64_t use_of(std::int64_t token, std::int64_t position) {
  return static_cast<std::uint64_t>(token) << 32 | static_cast<std::uint64_t>(position);
}

// One number per position, token above position: sorting them groups the uses of a token in token
// order.
void sort_uses(TensorView tokens_t, std::int64_t v, std::span<std::uint64_t> uses) {
  const auto* tokens = tokens_t.as<const std::int32_t>();
  for (std::size_t t = 0; t < uses.size(); ++t) {
    ensure(tokens[t] >= 0 && tokens[t] < v);
    uses[t] = use_of(tokens[t], static_cast<std::int64_t>(t));
  }
  std::sort(uses.begin(), uses.end());
}

void write_rows(TensorView dout_th, std::span<const std::uint64_t> uses, TensorView dtable_vh,
                std::int64_t begin, std::int64_t end) {
  const std::int64_t h = dtable_vh.dim(1);
  auto use = std::lower_bound(uses.begin(), uses.end(), use_of(begin, 0));
  for (std::int64_t token = begin; token < end; ++token) {
    const TensorView row_h = dtable_vh.slice(token * h, {h});
    const auto next =
        std::find_if(use, uses.end(), [&](std::uint64_t u) { return u >= use_of(token + 1, 0); });
    if (use == next) {
      std::memset(row_h.data, 0, static_cast<std::size_t>(row_h.bytes()));
    } else {
      HWY_DYNAMIC_DISPATCH(sum_rows)(dout_th, std::to_address(use), next - use, row_h);
    }
    use = next;
  }
}

}  // namespace

void embedding_forward(Parallel& parallel, TensorView tokens_t, TensorView table_vh,
                       TensorView out_th) {
  ensure(tokens_t.dtype == DType::i32 && table_vh.dtype == out_th.dtype);
  ensure(tokens_t.count() == out_th.dim(0) && table_vh.dim(1) == out_th.dim(1));
  const auto* tokens = tokens_t.as<const std::int32_t>();
  parallel.for_chunks(tokens_t.count(), rows_per_task, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      ensure(tokens[t] >= 0 && tokens[t] < table_vh.dim(0));
      copy_row(table_vh, tokens[t], out_th, t);
    }
  });
}

void embedding_backward(Parallel& parallel, TensorView tokens_t, TensorView dout_th,
                        TensorView dtable_vh, std::span<std::byte> scratch) {
  ensure(tokens_t.dtype == DType::i32 && dtable_vh.dtype == dout_th.dtype);
  ensure(tokens_t.count() == dout_th.dim(0) && dtable_vh.dim(1) == dout_th.dim(1));
  const auto uses = scratch_array<std::uint64_t>(scratch, tokens_t.count());
  sort_uses(tokens_t, dtable_vh.dim(0), uses);
  parallel.for_chunks(dtable_vh.dim(0), rows_per_task, [&](std::int64_t begin, std::int64_t end) {
    write_rows(dout_th, uses, dtable_vh, begin, end);
  });
}

std::uint64_t embedding_scratch_bytes(std::int64_t t) { return scratch_bytes<std::uint64_t>(t); }

}  // namespace strata::cpu
#endif
