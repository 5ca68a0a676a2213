#include "runtime/lane_walker.hpp"

#include <algorithm>

#include "strata/core/error.hpp"

namespace strata {

OpId report_op(const Schedule& schedule) {
  const auto found = std::ranges::find(schedule.ops, OpKind::report, &Op::kind);
  ensure(found != schedule.ops.end());
  return found->id;
}

}  // namespace strata
