#pragma once
// What several ranks hold, added on a device in their order: the same bits as the host's sum over
// ranks, so that what carries between ranks changes no result. Needs no CUDA to be included.

#include <functional>
#include <span>

#include "strata/core/tensor_view.hpp"
#include "strata/device/device.hpp"

namespace strata::cuda {

inline constexpr int rank_terms_max = 256;

// total[i] = terms[0][i] + terms[1][i] + ..., in this order; bf16 in f32, rounded once to nearest
// even; a sum that is no number is the plain quiet NaN. 2 to rank_terms_max terms, of f32, f64 or
// bf16; `total` may be one of them. Queued on the stream.
using SumOfTerms =
    std::function<void(std::span<const TensorView> terms, TensorView total, Stream& stream)>;

// For streams of the device. Throws Error where there is none, ConfigError in a build without CUDA.
SumOfTerms make_rank_sum(int ordinal);

}  // namespace strata::cuda
