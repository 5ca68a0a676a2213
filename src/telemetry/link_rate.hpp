#pragma once
// How many bytes per second a link moves at each moment, from transfers of which only begin and end
// are known. Those side by side took turns in some way: their averages, summed, would show rates
// that no link has. Of all the rates that move each link's bytes between their begins and ends this
// is the most even one, so it never shows more than the link's real peak. Thread contract: one
// thread.

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
  // By time; the last one is 0. Integrated, they are the bytes of all transfers.
  std::vector<Point> points() const;

 private:
  struct Mark {
    std::int64_t at_ns;
    double bytes;
  };
  // What the link has moved in all by a moment: at least what has ended, at most what had begun.
  struct Gate {
    std::int64_t at_ns;
    double ended, begun;
  };
  struct Bend {
    std::size_t gate;
    double moved, bytes_per_s;  // by then; until then
  };
  std::vector<Gate> gates() const;
  static Bend next_bend(const std::vector<Gate>& gates, std::size_t from, double moved);

  std::vector<Mark> starts_, ends_;
};

}  // namespace strata
