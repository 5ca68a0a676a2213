#pragma once
// NCCL of a process over whatever NcclApi: the library, or a fake of it that outlives the job.

#include <cstdint>
#include <functional>
#include <memory>

#include "comm/nccl/nccl_api.hpp"
#include "strata/comm/nccl.hpp"
#include "strata/core/clock.hpp"

namespace strata {

// Of all ranks of a process.
struct NcclTimes {
  double inside_s = 2;  // for a thread to leave NCCL before an abort is made under it
  std::function<std::int64_t()> clock = &now_ns;  // of what is under way on the devices
};

// Null: for ranks that are alone. Throws ConfigError when it is of no use.
std::unique_ptr<NcclJob> make_nccl_job(NcclApi* api, NcclTimes times = {});

NcclFacts nccl_facts(NcclApi& api);

}  // namespace strata
