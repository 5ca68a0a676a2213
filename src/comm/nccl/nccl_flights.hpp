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
    const std::lock_guard lock(mutex_);
    drop_passed();
    if (end_ - begin_ == ring_.size()) return;
    Flight& flight = ring_[end_++ % ring_.size()];
    flight.call = call;
    flight.since = Clock::now();
    stream.record(*flight.passed);
  }

  // No more will be noted, and the device may go.
  void end() {
    const std::lock_guard lock(mutex_);
    begin_ = end_;
    for (Flight& flight : ring_) flight.passed.reset();
  }

  // The first that has been under way for so long.
  std::optional<MetCall> overdue(double seconds) {
    const std::lock_guard lock(mutex_);
    drop_passed();
    if (begin_ == end_) return {};
    const Flight& oldest = ring_[begin_ % ring_.size()];
    if (std::chrono::duration<double>(Clock::now() - oldest.since).count() < seconds) return {};
    return oldest.call;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Flight {
    std::unique_ptr<Event> passed;
    MetCall call;
    Clock::time_point since;
  };

  void drop_passed() {
    while (begin_ != end_ && ring_[begin_ % ring_.size()].passed->is_reached()) ++begin_;
  }

  std::mutex mutex_;
  std::array<Flight, 64> ring_;
  std::size_t begin_ = 0, end_ = 0;  // of all that were noted
};

}  // namespace strata
