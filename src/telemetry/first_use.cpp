#include "telemetry/first_use.hpp"

#include <iterator>
#include <map>
#include <utility>

namespace strata {
namespace {

bool fetches(OpKind kind) {
  return kind == OpKind::feed || kind == OpKind::copy || kind == OpKind::read ||
         kind == OpKind::gather || kind == OpKind::reduce;
}

// A segment that accumulates only writes its contribution; the op that adds it updates the sum.
bool uses(const Operand& operand) {
  return operand.access == Access::read || operand.access == Access::update;
}

// What transfers brought and nobody used yet. Ranges do not overlap.
class Brought {
 public:
  // Calls visit(fetch) for all that overlaps, and forgets it.
  template <typename Visit>
  void take(const Region& region, Visit visit) {
    Space& space = spaces_[{region.tier, region.drive}];
    auto it = space.upper_bound(region.offset);
    if (it != space.begin() && std::prev(it)->second.end > region.offset) --it;
    while (it != space.end() && it->first < region.end()) {
      visit(it->second.fetch);
      it = space.erase(it);
    }
  }
  void put(const Region& region, OpId fetch) {
    spaces_[{region.tier, region.drive}][region.offset] = {region.end(), fetch};
  }

 private:
  struct Piece {
    std::uint64_t end;
    OpId fetch;
  };
  using Space = std::map<std::uint64_t, Piece>;

  std::map<std::pair<Tier, std::uint8_t>, Space> spaces_;
};

}  // namespace

std::vector<FirstUse> first_uses(const Schedule& schedule) {
  std::vector<FirstUse> found;
  Brought brought;
  for (const Op& op : schedule.ops) {
    for (const Operand& operand : op.operands)
      if (uses(operand))
        brought.take(operand.region, [&](OpId fetch) { found.push_back({fetch, op.id}); });
    for (const Operand& operand : op.operands) {
      if (operand.access == Access::read) continue;
      brought.take(operand.region, [](OpId) {});
      if (fetches(op.kind)) brought.put(operand.region, op.id);
    }
  }
  return found;
}

}  // namespace strata
