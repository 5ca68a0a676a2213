#pragma once
// Rows of a table by token, and the gradient of the table, with the semantics of
// Kernels::embedding_*. Thread contract: may be called from several threads at once.

#include <cstddef>
#include <span>

#include "strata/kernels/kernels.hpp"

namespace strata::cpu {

class Parallel;

void embedding_forward(Parallel& parallel, TensorView tokens_t, TensorView table_vh,
                       TensorView out_th);
void embedding_backward(Parallel& parallel, TensorView tokens_t, TensorView dout_th,
                        TensorView dtable_vh, std::span<std::byte> scratch);
std::uint64_t embedding_scratch_bytes(std::int64_t t);

}  // namespace strata::cpu
