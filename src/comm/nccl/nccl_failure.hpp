#pragma once
// What NCCL says of a failure, and of its version, as messages.

#include <string>
#include <string_view>

#include "comm/nccl/nccl_api.hpp"

namespace strata {

// "ncclGroupEnd: ncclSystemError (2): unhandled system error; ... (last error); what to do".
std::string nccl_failure(NcclApi& api, NcclStatus status, std::string_view call);

// Throws Error unless the status is success or in_progress.
void check(NcclApi& api, NcclStatus status, std::string_view call);

std::string nccl_version_text(int version);  // "2.28.9"
// Throws Error when the library cannot tell, ConfigError when it is not one that we can use.
int usable_nccl_version(NcclApi& api);

}  // namespace strata
