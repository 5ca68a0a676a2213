#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {

std::vector<Implementation> implementations() {
  return {{"ref", [] { return make_ref_kernels(); }},
          {"cpu1", [] { return make_cpu_kernels({.num_threads = 1}); }},
          {"cpu3", [] { return make_cpu_kernels({.num_threads = 3}); }}};
}

}  // namespace strata::testing
