#pragma once
// A map from byte ranges of every tier to values, split where ranges overlap in part. Ranges never
// written are absent.

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "strata/plan/plan.hpp"

namespace strata {

template <typename Value>
class IntervalMap {
 public:
  // Calls visit(value) for each stored piece inside `region`, after cutting pieces at its bounds.
  // Ranges inside `region` that hold nothing are first filled with Value{}.
  template <typename Visit>
  void for_each(const Region& region, Visit visit) {
    if (region.bytes == 0) return;
    Space& space = space_of(region);
    if (const auto exact = find_exact(space, region); exact != space.end())
      return visit(exact->second.value);
    cut(space, region.offset);
    cut(space, region.end());
    fill(space, region.offset, region.end());
    for (auto it = space.find(region.offset); it != space.end() && it->first < region.end(); ++it)
      visit(it->second.value);
  }
  // One value for the whole of `region`.
  void assign(const Region& region, Value value) {
    if (region.bytes == 0) return;
    Space& space = space_of(region);
    if (const auto exact = find_exact(space, region); exact != space.end()) {
      exact->second.value = std::move(value);
      return;
    }
    cut(space, region.offset);
    cut(space, region.end());
    space.erase(space.lower_bound(region.offset), space.lower_bound(region.end()));
    space.emplace(region.offset, Piece{region.end(), std::move(value)});
  }

 private:
  struct Piece {
    std::uint64_t end;
    Value value;
  };
  using Space = std::map<std::uint64_t, Piece>;

  // Each memory tier is a space, and each drive.
  Space& space_of(const Region& region) {
    const std::size_t at = static_cast<std::size_t>(region.tier) + region.drive;
    if (spaces_.size() <= at) spaces_.resize(at + 1);
    return spaces_[at];
  }
  // Most regions are asked for as they were written: nothing to cut or to fill.
  static auto find_exact(Space& space, const Region& region) {
    const auto found = space.find(region.offset);
    return found != space.end() && found->second.end == region.end() ? found : space.end();
  }
  static void cut(Space& space, std::uint64_t at) {
    auto it = space.upper_bound(at);
    if (it == space.begin()) return;
    --it;
    if (it->first == at || it->second.end <= at) return;
    Piece right{it->second.end, it->second.value};
    it->second.end = at;
    space.emplace(at, std::move(right));
  }
  static void fill(Space& space, std::uint64_t begin, std::uint64_t end) {
    auto it = space.lower_bound(begin);
    std::uint64_t at = begin;
    while (at < end) {
      const std::uint64_t next = it == space.end() ? end : std::min(end, it->first);
      if (at < next) it = space.emplace_hint(it, at, Piece{next, Value{}});
      at = it->second.end;
      ++it;
    }
  }
  std::vector<Space> spaces_;
};

}  // namespace strata
