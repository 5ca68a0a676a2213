#include "plan/fluid.hpp"

#include <algorithm>
#include <limits>
#include <span>

namespace strata {
namespace {

constexpr double not_found = -1;
// Shares that add up to a whole may come out above it by rounding.
constexpr double enough = 1 + 1e-12;

std::span<const Draw> draws_of(const Draws& draws) {
  return {draws.of.data(), static_cast<std::size_t>(draws.count)};
}

}  // namespace

Fluid::Fluid(const std::vector<SharedRate>& rates) {
  for (const SharedRate& rate : rates) rates_.push_back({rate});
}

void Fluid::start(OpId op, double seconds, const Draws& draws, double now) {
  flows_.push_back({op, now + seconds, 1, 1, &draws});
  changed_ |= draws.count > 0;
}

double Fluid::next_end(double now) {
  if (changed_) share_out(now);
  changed_ = false;
  double first = std::numeric_limits<double>::infinity();
  for (const Flow& flow : flows_) first = std::min(first, flow.end);
  return first;
}

void Fluid::take_ended(double time, std::vector<OpId>& ended) {
  for (std::size_t i = 0; i < flows_.size();) {
    if (flows_[i].end > time) {
      ++i;
      continue;
    }
    ended.push_back(flows_[i].op);
    changed_ |= flows_[i].draws->count > 0;
    flows_[i] = flows_.back();
    flows_.pop_back();
  }
}

void Fluid::share_out(double now) {
  count_users();
  for (Flow& flow : flows_) flow.new_speed = 1;
  if (!is_enough()) fill();
  for (Flow& flow : flows_) {
    if (flow.new_speed == flow.speed) continue;
    flow.end = now + (flow.end - now) * flow.speed / flow.new_speed;
    flow.speed = flow.new_speed;
  }
}

void Fluid::count_users() {
  for (Rate& rate : rates_) rate.left = 1, rate.wanted = 0, rate.users = 0;
  for (const Flow& flow : flows_)
    for (const Draw& draw : draws_of(*flow.draws)) {
      Rate& rate = rates_[static_cast<std::size_t>(draw.rate)];
      rate.wanted += draw.share;
      ++rate.users;
    }
  for (Rate& rate : rates_)
    rate.binds = std::ranges::all_of(rate.is.shared_by, [&](int part) {
      return part == SharedRate::none || rates_[static_cast<std::size_t>(part)].users > 0;
    });
}

bool Fluid::is_enough() const {
  return std::ranges::none_of(rates_,
                              [](const Rate& rate) { return rate.binds && rate.wanted > enough; });
}

// All speeds rise together; whenever a rate is used up, those that draw on it have their speed.
void Fluid::fill() {
  for (Flow& flow : flows_) flow.new_speed = not_found;
  double speed = 0;
  for (int rate = tightest(); rate != SharedRate::none; rate = tightest()) {
    const Rate& full = rates_[static_cast<std::size_t>(rate)];
    speed = std::max(speed, full.left / full.wanted);
    for (Flow& flow : flows_)
      if (flow.new_speed == not_found && draws_on(flow, rate)) settle(flow, speed);
  }
  for (Flow& flow : flows_)
    if (flow.new_speed == not_found) flow.new_speed = 1;
}

bool Fluid::draws_on(const Flow& flow, int rate) {
  return std::ranges::any_of(draws_of(*flow.draws),
                             [rate](const Draw& draw) { return draw.rate == rate; });
}

// The rate that is used up first as the speeds that are not found yet rise, or none before they are
// at their full.
int Fluid::tightest() const {
  int found = SharedRate::none;
  double least = 1;
  for (std::size_t i = 0; i < rates_.size(); ++i) {
    const Rate& rate = rates_[i];
    if (!rate.binds || rate.users == 0 || rate.left >= least * rate.wanted) continue;
    found = static_cast<int>(i);
    least = rate.left / rate.wanted;
  }
  return found;
}

void Fluid::settle(Flow& flow, double speed) {
  flow.new_speed = speed;
  for (const Draw& draw : draws_of(*flow.draws)) {
    Rate& rate = rates_[static_cast<std::size_t>(draw.rate)];
    rate.left -= speed * draw.share;
    rate.wanted -= draw.share;
    --rate.users;
  }
}

}  // namespace strata
