#pragma once
// Rows of a table by token, and the table's gradient: each row is one block column's, which adds
// the gradients of the token's uses in token order, so no order of blocks changes a bit. The
// scratch tells where each token is first used and how often; rows are then found by reading the
// tokens from there on.

#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/reductions.cuh"

namespace strata::cuda {

inline constexpr int embedding_warps = 8, embedding_threads = embedding_warps * warp_threads;
inline constexpr std::int64_t embedding_block_columns = embedding_threads * group_elements;

// A block's threads copy a row's spans in turns.
template <class T>
STRATA_KERNEL(embedding_threads)
embedding_forward_kernel(Global<const std::int32_t> tokens_t, Global<const T> table_vh,
                         Global<T> out_th, std::int64_t h, bool aligned) {
  const std::int64_t t = block_x(), token = tokens_t.load(t);
  for (std::int64_t j = thread_index() * group_elements; j < h; j += embedding_block_columns) {
    Span from = span_at(j, h, aligned), to = from;
    from.first += token * h;
    to.first += t * h;
    store_span(out_th, to, load_span(table_vh, from));
  }
}

// --- Backward

struct TokenUses {
  Global<std::int32_t> first_v;  // position of the first use
  Global<std::int32_t> count_v;
};

STRATA_KERNEL(256) clear_uses_kernel(TokenUses uses, std::int64_t v) {
  for (std::int64_t i = block_x() * block_threads() + thread_index(); i < v;
       i += grid_x() * block_threads()) {
    uses.first_v.store(i, INT32_MAX);
    uses.count_v.store(i, 0);
  }
}

STRATA_KERNEL(256)
note_uses_kernel(Global<const std::int32_t> tokens_t, TokenUses uses, std::int64_t t) {
  for (std::int64_t i = block_x() * block_threads() + thread_index(); i < t;
       i += grid_x() * block_threads()) {
    uses.first_v.atomic_min(tokens_t.load(i), static_cast<std::int32_t>(i));
    uses.count_v.atomic_add(tokens_t.load(i), 1);
  }
}

template <class T>
struct EmbeddingBackward {
  Global<const std::int32_t> tokens_t;
  Global<const T> dout_th;
  Global<T> dtable_vh;
  TokenUses uses;
  std::int64_t t, h;
  bool aligned;
};

STRATA_DEVICE int lowest_bit(std::uint32_t bits) {
  return population_count((bits & (~bits + 1)) - 1);
}

// Adds the rows at `first` + the positions of set bits, in order.
template <class T>
STRATA_DEVICE void add_uses(const EmbeddingBackward<T>& args, std::uint32_t bits,
                            std::int64_t first, const Span& columns, Floats& total) {
  for (; bits != 0; bits &= bits - 1) {
    Span span = columns;
    span.first += (first + lowest_bit(bits)) * args.h;
    const Floats added = load_floats(args.dout_th, span);
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) total[i] += added[i];
  }
}

// The block looks at as many tokens at a time as it has threads; each warp's votes become one word
// that all threads walk.
template <class T>
STRATA_DEVICE Floats sum_uses(const EmbeddingBackward<T>& args, std::int64_t token,
                              const Span& columns) {
  const Shared<std::uint32_t> votes(0, embedding_warps);
  std::int64_t begin = args.uses.first_v.load(token);
  Floats total{};
  for (int left = args.uses.count_v.load(token); left > 0; begin += embedding_threads) {
    const std::int64_t position = begin + thread_index();
    const std::uint32_t vote = ballot(position < args.t && args.tokens_t.load(position) == token);
    if (lane_index() == 0) votes.store(warp_index(), vote);
    sync_threads();
    for (int warp = 0; warp < embedding_warps; ++warp) {
      const std::uint32_t bits = votes.load(warp);
      add_uses(args, bits, begin + warp * warp_threads, columns, total);
      left -= population_count(bits);
    }
    sync_threads();
  }
  return total;
}

template <class T>
STRATA_KERNEL(embedding_threads)
embedding_backward_kernel(EmbeddingBackward<T> args) {
  const std::int64_t token = block_x();
  Span span = span_at(block_y() * embedding_block_columns + thread_index() * group_elements, args.h,
                      args.aligned);
  const Floats total = sum_uses(args, token, span);
  span.first += token * args.h;
  store_floats(args.dtable_vh, span, total);
}

// --- Host

template <class Launcher>
void launch_embedding_forward(Launcher& launcher, const TensorView& tokens_t,
                              const TensorView& table_vh, const TensorView& out_th) {
  const std::int64_t t = tokens_t.count(), h = table_vh.dim(1);
  ensure(tokens_t.dtype == DType::i32 && table_vh.dtype == out_th.dtype);
  ensure(out_th.count() == t * h);
  const bool aligned = is_aligned(table_vh, h) && is_aligned(out_th);
  with_float_type(table_vh.dtype, [&](auto element) {
    using T = decltype(element);
    launcher.launch("embedding_forward", embedding_forward_kernel<T>,
                    LaunchShape{.grid_x = t, .threads = embedding_threads},
                    Global<const std::int32_t>(tokens_t), Global<const T>(table_vh),
                    Global<T>(out_th), h, aligned);
  });
}

inline LaunchShape embedding_backward_shape(std::int64_t v, std::int64_t h) {
  return {v, ceil_div(h, embedding_block_columns), embedding_threads,
          embedding_warps * std::int64_t{sizeof(std::uint32_t)}};
}

template <class Launcher>
TokenUses launch_note_uses(Launcher& launcher, const TensorView& tokens_t, std::int64_t v,
                           std::span<std::byte> scratch) {
  const std::int64_t t = tokens_t.count();
  std::int32_t* first = scratch_array<std::int32_t>(scratch, 2 * v).data();
  const TokenUses uses{{first, v}, {first + v, v}};
  launcher.launch("clear_uses", clear_uses_kernel, strided_shape(v, launcher.limits()), uses, v);
  launcher.launch("note_uses", note_uses_kernel, strided_shape(t, launcher.limits()),
                  Global<const std::int32_t>(tokens_t), uses, t);
  return uses;
}

template <class Launcher>
void launch_embedding_backward(Launcher& launcher, const TensorView& tokens_t,
                               const TensorView& dout_th, const TensorView& dtable_vh,
                               std::span<std::byte> scratch) {
  const std::int64_t t = tokens_t.count(), v = dtable_vh.dim(0), h = dtable_vh.dim(1);
  ensure(tokens_t.dtype == DType::i32 && dtable_vh.dtype == dout_th.dtype);
  ensure(dout_th.count() == t * h && t < INT32_MAX);
  const TokenUses uses = launch_note_uses(launcher, tokens_t, v, scratch);
  const bool aligned = is_aligned(dout_th, h) && is_aligned(dtable_vh);
  with_float_type(dout_th.dtype, [&](auto element) {
    using T = decltype(element);
    const EmbeddingBackward<T> args{Global<const std::int32_t>(tokens_t),
                                    Global<const T>(dout_th),
                                    Global<T>(dtable_vh),
                                    uses,
                                    t,
                                    h,
                                    aligned};
    launcher.launch("embedding_backward", embedding_backward_kernel<T>,
                    embedding_backward_shape(v, h), args);
  });
}

}  // namespace strata::cuda
