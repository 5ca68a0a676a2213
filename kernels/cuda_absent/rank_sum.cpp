#include "kernels/cuda/rank_sum.hpp"

#include "strata/core/error.hpp"

namespace strata::cuda {

SumOfTerms make_rank_sum(int) {
  throw ConfigError("this build of Strata has no CUDA kernels to add what ranks hold");
}

}  // namespace strata::cuda
