#pragma once
// Strided conversions between bf16 and f32 matrices on the calling thread.
// Thread contract: may be called from several threads at once.

#include <cstdint>

#include "strata/core/dtype.hpp"

namespace strata::cpu {

template <typename T>
struct Rows {
  T* data;
  std::int64_t stride;  // elements from one row to the next
};

void widen(Rows<const bfloat16> source, Rows<float> target, std::int64_t rows,
           std::int64_t columns);
void narrow(Rows<const float> source, Rows<bfloat16> target, std::int64_t rows,
            std::int64_t columns);

}  // namespace strata::cpu
