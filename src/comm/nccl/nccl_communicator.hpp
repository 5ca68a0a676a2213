#pragma once
// A Communicator whose ranks meet on another line and whose bytes NCCL carries.

#include <memory>

#include "comm/nccl/nccl_link.hpp"
#include "strata/comm/nccl.hpp"

namespace strata {

// `line` is what carried the data before: a Meeting. `link` is open; null for a rank alone.
std::unique_ptr<Communicator> make_nccl_communicator(std::shared_ptr<Communicator> line,
                                                     std::shared_ptr<NcclLink> link, Device& device,
                                                     const NcclRankOptions& options);

}  // namespace strata
