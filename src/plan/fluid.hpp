#pragma once
// Ops under way that share rates, as fluids share pipes: each runs at full speed unless a rate that
// it draws on is asked for more than there is; then those that draw on it slow down together
// (max-min fair: nobody could be faster without making a slower one slower still).

#include <array>
#include <cstdint>
#include <vector>

#include "strata/plan/plan.hpp"

namespace strata {

// A rate of 1 that is drawn on by shares. One that is `shared_by` two others is the sum of two
// directions: it binds only while both have users.
struct SharedRate {
  static constexpr int none = -1;
  std::array<int, 2> shared_by{none, none};
};

// What one op draws while it runs at full speed.
struct Draw {
  int rate = 0;
  double share = 0;
};
struct Draws {
  std::array<Draw, 5> of{};
  int count = 0;
  void add(int rate, double share) { of[static_cast<std::size_t>(count++)] = {rate, share}; }
};

class Fluid {
 public:
  explicit Fluid(const std::vector<SharedRate>& rates);

  // `draws` must stay where it is until the op ends.
  void start(OpId op, double seconds, const Draws& draws, double now);
  bool empty() const { return flows_.empty(); }
  // When the next op ends, if no other starts before.
  double next_end(double now);
  // Takes out those that end by `time`, and adds them to `ended`.
  void take_ended(double time, std::vector<OpId>& ended);

 private:
  struct Flow {
    OpId op;
    double end;        // at the present speed
    double speed;      // 0..1
    double new_speed;  // while it is being found
    const Draws* draws;
  };
  struct Rate {
    SharedRate is;
    double left = 1, wanted = 0;  // wanted: at full speed, by flows whose speed is not found yet
    int users = 0;                // of those
    bool binds = true;
  };

  void share_out(double now);
  void count_users();
  bool is_enough() const;
  void fill();
  static bool draws_on(const Flow& flow, int rate);
  int tightest() const;
  void settle(Flow& flow, double speed);

  std::vector<Rate> rates_;
  std::vector<Flow> flows_;
  bool changed_ = false;
};

}  // namespace strata
