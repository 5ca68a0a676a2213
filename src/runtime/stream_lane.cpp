#include "runtime/stream_lane.hpp"

#include <algorithm>

namespace strata {

StreamLane::StreamLane(Device& device, Stream& stream) : stream_(stream), ring_(depth) {
  for (Slot& slot : ring_) slot.begin = device.make_event(), slot.end = device.make_event();
}

void StreamLane::enter() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return issued_ - retired_ < depth; });
}

bool StreamLane::is_full() const {
  const std::lock_guard lock(mutex_);
  return issued_ - retired_ == depth;
}

std::uint64_t StreamLane::end(const Flight& flight) {
  Slot& own = slot(issued_);
  stream_.record(*own.end);
  const std::lock_guard lock(mutex_);
  own.flight = flight;
  changed_.notify_all();
  return issued_++;
}

void StreamLane::await_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return issued_ == retired_; });
}

// Under the lock the slot is still this op's.
void StreamLane::hold(Stream& waiter, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (number >= retired_) waiter.wait(*slot(number).end);
}

std::optional<StreamLane::Flight> StreamLane::oldest() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || issued_ > retired_; });
  if (issued_ == retired_) return {};
  return slot(retired_).flight;
}

std::optional<StreamLane::Flight> StreamLane::peek() const {
  const std::lock_guard lock(mutex_);
  if (issued_ == retired_) return {};
  return slot(retired_).flight;
}

// Without the lock: the slot stays this op's until it is retired.
OpSpan StreamLane::await_oldest() {
  Slot& own = slot(retired_);
  own.end->synchronize();
  return {own.begin->time_ns(), own.end->time_ns()};
}

void StreamLane::retire() {
  const std::lock_guard lock(mutex_);
  ++retired_;
  changed_.notify_all();
}

void StreamLane::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

std::vector<std::unique_ptr<StreamLane>> make_stream_lanes(const Plan& plan, OpRunner& runner) {
  std::vector<std::unique_ptr<StreamLane>> lanes(num_lanes);
  for (const Schedule& schedule : plan.schedules)
    for (const Op& op : schedule.ops) {
      std::unique_ptr<StreamLane>& lane = lanes[static_cast<std::size_t>(op.lane)];
      if (lane == nullptr && runner.is_asynchronous(op))
        lane = std::make_unique<StreamLane>(runner.device(), runner.stream(op));
    }
  return lanes;
}

}  // namespace strata
