#pragma once
// NCCL of a process over whatever NcclApi: the library, or a fake of it that outlives the job.

#include <memory>

#include "comm/nccl/nccl_api.hpp"
#include "strata/comm/nccl.hpp"

namespace strata {

// Null: for ranks that are alone. Throws ConfigError when it is of no use.
std::unique_ptr<NcclJob> make_nccl_job(NcclApi* api);

NcclFacts nccl_facts(NcclApi& api);

}  // namespace strata
