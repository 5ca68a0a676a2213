#pragma once
// The collectives of one rank that its device has not carried out yet, so that one that hangs is
// noticed: NCCL waits for ever. More than there are events for are not looked at.
//
// Thread contract: note() and end() from the rank's thread, overdue() from another.

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include "comm/meeting.hpp"
#include "strata/device/device.hpp"

namespace strata {

class NcclFlights {
 public:
  explicit NcclFlights(Device& device) {
    for (Flight& flight : ring_) flight.passed = device.make_event();
  }

  // What the stream has been given so far is of `call`.
  void note(const MetCall& call, Stream& stream) {
    Flight* const flight = free_flight();
    if (flight == nullptr) return;
    stream.record(*flight->passed);  // Without the lock: it may wait, and who watches must not.
    const std::lock_guard lock(mutex_);
    flight->call = call;
    flight->since = Clock::now();
    ++end_;
  }

  // No more will be noted, and the device may go.
  void end() {
    const std::lock_guard lock(mutex_);
    begin_ = end_;
    for (Flight& flight : ring_) flight.passed.reset();
  }

  // The first that has been under way for so long, not counting what those before it took.
  std::optional<MetCall> overdue(double seconds) {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    drop_passed(now);
    if (begin_ == end_) return {};
    const Flight& oldest = this->oldest();
    if (std::chrono::duration<double>(now - oldest.since).count() < seconds) return {};
    return oldest.call;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Flight {
    std::unique_ptr<Event> passed;
    MetCall call;
    Clock::time_point since;
  };

  // It stays free until it is noted: only the rank's thread takes any.
  Flight* free_flight() {
    const std::lock_guard lock(mutex_);
    drop_passed(Clock::now());
    return end_ - begin_ == ring_.size() ? nullptr : &ring_[end_ % ring_.size()];
  }
  Flight& oldest() { return ring_[begin_ % ring_.size()]; }
  void drop_passed(Clock::time_point now) {
    while (begin_ != end_ && oldest().passed->is_reached()) {
      ++begin_;
      if (begin_ != end_) oldest().since = now;
    }
  }

  std::mutex mutex_;
  std::array<Flight, 64> ring_;
  std::size_t begin_ = 0, end_ = 0;  // of all that were noted
};

}  // namespace strata
