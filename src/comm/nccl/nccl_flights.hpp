#pragma once
// The collectives of one rank that its device has not carried out yet, so that one that hangs is
// noticed: NCCL waits for ever. More than there are events for are not looked at.
//
// Thread contract: note() and end() from the rank's thread, overdue() from another.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "comm/meeting.hpp"
#include "strata/core/clock.hpp"
#include "strata/device/device.hpp"

namespace strata {

class NcclFlights {
 public:
  using Clock = std::function<std::int64_t()>;  // nanoseconds

  explicit NcclFlights(Device& device, Clock clock = &now_ns) : clock_(std::move(clock)) {
    for (Flight& flight : ring_) flight.passed = device.make_event();
  }

  // What the stream has been given so far is of `call`.
  void note(const MetCall& call, Stream& stream) {
    Flight* const flight = free_flight();
    if (flight == nullptr) return;
    stream.record(*flight->passed);  // Without the lock: it may wait, and who watches must not.
    const std::lock_guard lock(mutex_);
    flight->call = call;
    flight->since_ns = clock_();
    ++end_;
  }

  // No more will be noted, and the device may go.
  void end() {
    const std::lock_guard lock(mutex_);
    begin_ = end_;
    for (Flight& flight : ring_) flight.passed.reset();
  }

  // The first that has been under way for so long, not counting what those before it took.
  std::optional<MetCall> overdue(double seconds_max) {
    const std::lock_guard lock(mutex_);
    const std::int64_t now_ns = clock_();
    drop_passed(now_ns);
    if (begin_ == end_) return {};
    const Flight& oldest = this->oldest();
    if (seconds(now_ns - oldest.since_ns) < seconds_max) return {};
    return oldest.call;
  }

 private:
  struct Flight {
    std::unique_ptr<Event> passed;
    MetCall call;
    std::int64_t since_ns = 0;
  };

  // It stays free until it is noted: only the rank's thread takes any.
  Flight* free_flight() {
    const std::lock_guard lock(mutex_);
    drop_passed(clock_());
    return end_ - begin_ == ring_.size() ? nullptr : &ring_[end_ % ring_.size()];
  }
  Flight& oldest() { return ring_[begin_ % ring_.size()]; }
  void drop_passed(std::int64_t now_ns) {
    while (begin_ != end_ && oldest().passed->is_reached()) {
      ++begin_;
      if (begin_ != end_) oldest().since_ns = now_ns;
    }
  }

  const Clock clock_;
  std::mutex mutex_;
  std::array<Flight, 64> ring_;
  std::size_t begin_ = 0, end_ = 0;  // of all that were noted
};

}  // namespace strata
