#pragma once
// Cuts stretches of a shard where weight decay begins or ends. Asked for stretches in rising order,
// it looks at each range once.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "strata/kernels/update.hpp"

namespace strata {

enum class Decay : std::uint8_t { no, yes };

class DecayRuns {
 public:
  DecayRuns(std::span<const DecayRange> ranges, std::int64_t first) : ranges_(ranges) {
    const auto past = std::ranges::upper_bound(ranges, first, {}, &DecayRange::end);
    at_ = static_cast<std::size_t>(past - ranges.begin());
  }

  // Calls f(begin, end, decay) for the runs of one decay that make up [begin, end).
  template <typename F>
  void for_each(std::int64_t begin, std::int64_t end, F f) {
    while (begin < end) {
      const bool inside = is_inside(begin);
      const std::int64_t run_end = std::min(end, next_change(inside));
      f(begin, run_end, inside ? Decay::yes : Decay::no);
      begin = run_end;
    }
  }

  // The decay of all of [begin, end), if it is one.
  std::optional<Decay> of_all(std::int64_t begin, std::int64_t end) {
    const bool inside = is_inside(begin);
    if (next_change(inside) < end) return std::nullopt;
    return inside ? Decay::yes : Decay::no;
  }

 private:
  bool is_inside(std::int64_t element) {
    while (at_ < ranges_.size() && ranges_[at_].end <= element) ++at_;
    return at_ < ranges_.size() && ranges_[at_].begin <= element;
  }
  std::int64_t next_change(bool inside) const {
    if (at_ == ranges_.size()) return INT64_MAX;
    return inside ? ranges_[at_].end : ranges_[at_].begin;
  }
  std::span<const DecayRange> ranges_;
  std::size_t at_;  // the first range that does not end before the stretch
};

}  // namespace strata
