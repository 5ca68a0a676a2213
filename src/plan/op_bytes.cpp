// What an op moves over a link.

#include "strata/core/bytes.hpp"
#include "strata/plan/plan.hpp"

namespace strata {

std::uint64_t collective_bytes(const Op& op) {
  if (op.kind == OpKind::gather) return op.operands[1].region.bytes - op.operands[0].region.bytes;
  if (op.kind == OpKind::reduce) return op.operands[0].region.bytes - op.operands[1].region.bytes;
  return 0;
}

std::uint64_t link_bytes(const Op& op, std::uint64_t io_alignment) {
  switch (op.kind) {
    case OpKind::feed:
      return op.operands.back().region.bytes;
    case OpKind::copy: {
      const Region &source = op.operands.front().region, &target = op.operands.back().region;
      return source.tier == target.tier ? 0 : target.bytes;
    }
    case OpKind::read:
      return align_up(op.operands.front().region.bytes, io_alignment);
    case OpKind::write:
      return align_up(op.operands.back().region.bytes, io_alignment);
    default:
      return collective_bytes(op);
  }
}

}  // namespace strata
