#pragma once
// Sums over ranks: eight elements a thread, strided over the grid; a thread has the values of four
// ranks on their way at once, and adds them rank after rank.

#include "kernels/common/rank_sum_formulas.hpp"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/rank_sum.hpp"

namespace strata::cuda {

// Not declared const, as the total may be one of them: a thread writes what it alone has read.
template <class T>
struct RankTerms {
  int count = 0;
  Global<T> terms[rank_terms_max];
};

template <class T>
using RankSums = Group<RankSumOf<T>, group_elements>;

// Elements beyond 16 bytes a group are read one by one.
template <class T>
STRATA_DEVICE Group<T, group_elements> load_terms(const Global<T>& from, const Span& span) {
  if constexpr (sizeof(T) <= 4) {
    return load_span(from, span);
  } else {
    Group<T, group_elements> group{};
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i)
      if (i < span.count) group[i] = from.load(span.first + i);
    return group;
  }
}

template <class T>
STRATA_DEVICE void store_sums(const Global<T>& to, const Span& span, const RankSums<T>& sums) {
  Group<T, group_elements> group{};
  STRATA_UNROLL
  for (int i = 0; i < group_elements; ++i) group[i] = finished_sum<T>(sums[i]);
  if constexpr (sizeof(T) <= 4) {
    store_span(to, span, group);
  } else {
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i)
      if (i < span.count) to.store(span.first + i, group[i]);
  }
}

inline constexpr int terms_at_once = 4;

// Adds ranks [first, first + 4), as far as there are so many.
template <class T>
STRATA_DEVICE void add_terms(const RankTerms<T>& terms, int first, const Span& span,
                             RankSums<T>& sums) {
  Group<T, group_elements> values[terms_at_once] = {};
  STRATA_UNROLL
  for (int k = 0; k < terms_at_once; ++k)
    if (first + k < terms.count) values[k] = load_terms(terms.terms[first + k], span);
  STRATA_UNROLL
  for (int k = 0; k < terms_at_once; ++k) {
    if (first + k >= terms.count) break;
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) sums[i] = sums[i] + rank_term(values[k][i]);
  }
}

// Rank 0's values as they are: added to a zero, a negative zero would lose its sign.
template <class T>
STRATA_KERNEL(256)
rank_sum_kernel(STRATA_PARAMETER RankTerms<T> terms, Global<T> total, std::int64_t count,
                bool aligned) {
  for_each_span(count, aligned, [&](const Span& span) {
    RankSums<T> sums{};
    const Group<T, group_elements> first = load_terms(terms.terms[0], span);
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) sums[i] = rank_term(first[i]);
    for (int rank = 1; rank < terms.count; rank += terms_at_once)
      add_terms(terms, rank, span, sums);
    store_sums(total, span, sums);
  });
}

// --- Host

template <class T, class Launcher>
void launch_rank_sum_of(Launcher& launcher, std::span<const TensorView> terms,
                        const TensorView& total) {
  RankTerms<T> pointers;
  bool aligned = is_aligned(total);
  for (const TensorView& term : terms) {
    ensure(term.dtype == total.dtype && term.count() == total.count());
    aligned = aligned && is_aligned(term);
    pointers.terms[pointers.count++] = Global<T>(term);
  }
  launcher.launch("rank_sum", rank_sum_kernel<T>,
                  elementwise_shape(total.count(), launcher.limits()), pointers, Global<T>(total),
                  total.count(), aligned);
}

template <class Launcher>
void launch_rank_sum(Launcher& launcher, std::span<const TensorView> terms,
                     const TensorView& total) {
  ensure(terms.size() >= 2 && terms.size() <= static_cast<std::size_t>(rank_terms_max));
  if (total.count() == 0) return;
  if (total.dtype == DType::f64) return launch_rank_sum_of<double>(launcher, terms, total);
  with_float_type(total.dtype, [&](auto element) {
    launch_rank_sum_of<decltype(element)>(launcher, terms, total);
  });
}

}  // namespace strata::cuda
