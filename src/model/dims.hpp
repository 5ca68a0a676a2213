#pragma once
// The sizes of one micro-batch through one model, by the letters of kernels.hpp.

#include <cstdint>

#include "strata/core/dtype.hpp"

namespace strata {

struct Dims {
  std::int64_t t = 0;  // tokens of a micro-batch
  std::int64_t h = 0;  // hidden size
  std::int64_t q = 0;  // query heads
  std::int64_t g = 0;  // key/value heads
  std::int64_t d = 0;  // head_dim
  std::int64_t f = 0;  // feed-forward size
  std::int64_t v = 0;  // vocabulary
  bool query_key_norm = false;
  DType dtype = DType::bf16;
  float epsilon = 1e-5f;
  float rope_attention_factor = 1;
};

}  // namespace strata
