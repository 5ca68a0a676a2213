#include "comm/nccl/nccl_job.hpp"
#include "strata/comm/nccl.hpp"
#include "strata/core/error.hpp"

namespace strata {

NcclFacts read_nccl() { return {false, "", "this build of Strata has no NCCL"}; }

std::unique_ptr<NcclJob> NcclJob::start(int world) {
  if (world == 1) return make_nccl_job(nullptr);
  throw ConfigError(
      "this build of Strata has no NCCL to carry between GPUs: install its header (nccl.h, in "
      "libnccl-dev) beside a CUDA toolkit, and build again");
}

}  // namespace strata
