#pragma once
// Sums over ranks in their order, over NCCL, which moves the values and adds none. The other ranks'
// values arrive in the staging memory, as much at a time as has room there, and are added on the
// device; so the memory is bounded whatever the size of a call.
//
// A part of a sum that is scattered crosses each link once, as in a ring; what all ranks want is
// gathered from all and added by each, which is meant for the few bytes of norms and losses.
//
// Thread contract: one thread.

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/nccl/nccl_link.hpp"
#include "comm/nccl/nccl_staging.hpp"
#include "strata/comm/nccl.hpp"

namespace strata {

class NcclSum {
 public:
  NcclSum(NcclLink& link, Device& device, const NcclRankOptions& options, int rank, int world);

  // `shard` = sum over ranks of their `full` at this rank's part, where it may lie.
  void scatter(const MetCall& call, TensorView full, TensorView shard, Stream& stream);
  // `values` = sum over ranks of their `values`.
  void share(const MetCall& call, TensorView values, Stream& stream);
  // The stream goes on once those of all ranks have come here.
  void meet(const MetCall& call, Stream& stream);

 private:
  void exchange(const MetCall& call, TensorView full, std::int64_t begin, std::int64_t count,
                Stream& stream);
  TensorView slot(int index, int num_slots, DType dtype, std::int64_t count) const;
  int slot_of(int other) const { return other < rank_ ? other : other - 1; }

  NcclLink& link_;
  DeviceSum sum_;
  NcclStaging staging_;
  int rank_, world_;
  std::vector<TensorView> terms_;  // of a chunk, by rank
};

}  // namespace strata
