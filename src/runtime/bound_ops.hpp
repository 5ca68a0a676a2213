#pragma once
// The ops of a Plan with what they work on: addresses and views, computed once, when the Plan is
// loaded. Immutable.

#include <cstddef>
#include <span>
#include <vector>

#include "strata/core/tensor_view.hpp"
#include "strata/io/store/shard_store.hpp"
#include "strata/memory/tier_memory.hpp"
#include "strata/plan/plan.hpp"
#include "strata/runtime/nvme_tiles.hpp"

namespace strata {

struct BoundOp {
  std::vector<TensorView> views;  // per operand, scratch excluded
  std::span<std::byte> scratch;
  std::span<std::byte> padding;      // reduce: what of the slice lies behind the block's vector
  int store_tile = -1;               // read and write
  std::span<std::byte> tile_memory;  // read and write
};

// Where a region of the device or of host memory is; of NVMe: nullptr.
std::byte* address(const TierMemory& memory, const Region& region);

class BoundOps {
 public:
  // `store` may be null when the Plan uses no NVMe.
  BoundOps(const Program& program, const Plan& plan, const TierMemory& memory,
           const ShardStore* store);

  const BoundOp& op(std::size_t schedule, OpId id) const { return bound_[schedule][id.index()]; }

 private:
  BoundOp bind(const Op& op, const Plan& plan, const NvmeTiles& nvme) const;
  void bind_transfer(const Op& op, const Plan& plan, const NvmeTiles& nvme, BoundOp& bound) const;
  TensorView view(const Op& op, const Operand& operand) const;
  TensorView of_model(TensorView whole, const TileRef& what) const;
  std::int64_t elements(const TileRef& what) const;
  std::span<std::byte> padding_of(const Operand& slice) const;

  const Program& program_;
  const TierMemory& memory_;
  const ShardStore* store_;
  std::vector<std::vector<BoundOp>> bound_;  // [schedule][op]
};

}  // namespace strata
