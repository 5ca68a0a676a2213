#pragma once
// An InFlightList knows which pieces the kernel has, and since when: so that somebody can be told
// when it keeps them too long. Its places are used again; nothing is allocated per piece once as
// many have been in flight as ever will be.
//
// Thread contract: none of its own; the RequestBoard guards it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/common/piece.hpp"

namespace strata {

struct StallCheck {
  std::int64_t next_ns = 0;  // when to look again
  // Set when somebody is to be told: for how long something was out and nothing came back, and all
  // that is out.
  std::optional<double> silent_seconds;
  std::string in_flight;
};

class InFlightList {
 public:
  explicit InFlightList(std::size_t reserved);

  std::size_t begin(const Piece& piece, std::int64_t now_ns);  // returns its place
  void end(std::size_t place, std::int64_t now_ns);

  // A piece that is out for `stall_ns` is reported once, and all of them again each time that
  // `stall_ns` pass with nothing reported and nothing ended.
  StallCheck check(std::int64_t now_ns, std::int64_t stall_ns);
  // Nobody's time ran for `pause_ns` until now.
  void forget_pause(std::int64_t pause_ns, std::int64_t now_ns);

 private:
  struct Entry {
    const ActiveRequest* active = nullptr;  // nullptr: a free place
    std::uint64_t start = 0;
    std::uint64_t bytes = 0;
    std::int64_t since_ns = 0;
    bool told = false;
  };
  std::int64_t due_ns(const Entry& entry, std::int64_t stall_ns) const;
  std::string describe(std::int64_t now_ns) const;

  std::vector<Entry> entries_;
  std::vector<std::size_t> free_;
  std::int64_t last_end_ns_ = 0;
  std::int64_t last_news_ns_ = 0;  // the last end or report
};

}  // namespace strata
