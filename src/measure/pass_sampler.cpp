#include "pass_sampler.hpp"

#include "strata/core/clock.hpp"

namespace strata {
namespace {

double timed(const std::function<void()>& pass) {
  const std::int64_t begin = now_ns();
  pass();
  return seconds(now_ns() - begin);
}

}  // namespace

void PassSampler::sample(const TimedPass& pass, PassResult& result) const {
  progress_.begin(result.pass, 1);
  ping(result);
  for (int i = -1; i < repeats_; ++i) {
    progress_.at_share(static_cast<double>(i + 1) / (repeats_ + 1));
    const double roofline_s = pass.roofline ? timed(pass.roofline) : 0;
    const double pass_s = timed(pass.run);
    if (i < 0) continue;
    if (pass.roofline) result.roofline_seconds.values.push_back(roofline_s);
    result.seconds.values.push_back(pass_s);
  }
  ping(result);
}

void PassSampler::ping(PassResult& result) const {
  if (cores_) result.ping_ns.values.push_back(ping_pong_ns(*cores_));
}

}  // namespace strata
