#pragma once
// A RequestQueue decides whose turn it is: now before prefetch before write-back, first come first
// served within a class. Every eighth turn goes to the longest-waiting request of the lower
// classes, so that none of them starves.
//
// Thread contract: none of its own; the RequestBoard guards it.

#include <array>
#include <cstdint>

#include "io/common/piece.hpp"

namespace strata {

class RequestQueue {
 public:
  static constexpr std::uint64_t turns_per_lower_turn = 8;

  void push(ActiveRequest& request);
  bool empty() const;
  // The request to cut the next piece from; nullptr when empty. Counts as a turn.
  ActiveRequest* next();
  // Takes out a request that next() has returned before; it is at the head of its class.
  void pop(ActiveRequest& request);
  // Takes out all requests that carry `completion`; they hang together by `next`.
  ActiveRequest* take_out(const IoCompletion& completion);

 private:
  struct Line {
    ActiveRequest* head = nullptr;
    ActiveRequest* tail = nullptr;
  };
  static void append(Line& line, ActiveRequest& request);
  static void take_out(Line& line, const IoCompletion& completion, ActiveRequest*& taken);
  Line& line_of(const ActiveRequest& request);
  int highest() const;
  ActiveRequest* oldest_below(int line) const;

  std::array<Line, num_io_priorities> lines_;
  std::uint64_t turn_ = 0;
};

}  // namespace strata
