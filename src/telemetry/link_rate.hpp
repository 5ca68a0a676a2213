#pragma once
// How many bytes per second a link moves at each moment: the sum over the transfers under way, each
// taken as even over its time. Thread contract: one thread.

#include <cstdint>
#include <vector>

namespace strata {

class LinkRate {
 public:
  struct Point {
    std::int64_t at_ns;
    double bytes_per_s;  // from here to the next point
  };

  // A transfer without a length has no rate, and is left out.
  void add(std::int64_t start_ns, std::int64_t end_ns, std::uint64_t bytes);
  // By time; the last one is 0.
  std::vector<Point> points() const;

 private:
  struct Change {
    std::int64_t at_ns;
    double bytes_per_s;
    int transfers;  // +1 or -1
  };
  std::vector<Change> changes_;
};

}  // namespace strata
