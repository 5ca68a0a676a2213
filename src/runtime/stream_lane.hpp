#pragma once
// The ops of one lane that a stream of the device carries out later than they are issued. Each lies
// between two events of a ring: the lane sleeps while the ring is full, nothing is made during a
// step. An op's number counts the ops before it.
//
// Thread contract: enter() to end(), await_idle() and close() from the lane's thread; oldest() to
// retire() from one other, or from the same; hold() and peek() from any.

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/op_runner.hpp"
#include "runtime/step_state.hpp"
#include "strata/device/device.hpp"

namespace strata {

class StreamLane {
 public:
  struct Flight {
    const Op* op = nullptr;
    StepState* step = nullptr;
    std::int64_t reached_ns = 0;  // when the lane came to it
  };

  StreamLane(Device& device, Stream& stream);

  // Returns once another op has room.
  void enter();
  bool is_full() const;
  // The op's work is what goes to the stream between these. What comes between begin() and a
  // failure stays on the stream and counts as nobody's.
  void begin() { stream_.record(*slot(issued_).begin); }
  std::uint64_t end(const Flight& flight);  // returns its number
  void await_idle();

  // Later work on `waiter` starts after this op, which may be long over.
  void hold(Stream& waiter, std::uint64_t number);

  // The first op in flight; waits for one. Nothing: there will be none.
  std::optional<Flight> oldest();
  std::optional<Flight> peek() const;  // the same, without waiting
  OpSpan await_oldest();               // when it ran. Throws what its work has come to.
  void retire();                       // the oldest is no longer in flight
  void close();                        // no op will come any more

 private:
  struct Slot {
    std::unique_ptr<Event> begin, end;
    Flight flight;
  };
  static constexpr std::size_t depth = 64;
  Slot& slot(std::uint64_t number) { return ring_[number % depth]; }
  const Slot& slot(std::uint64_t number) const { return ring_[number % depth]; }

  Stream& stream_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> ring_;
  std::uint64_t issued_ = 0;   // written by the lane, under mutex_
  std::uint64_t retired_ = 0;  // guarded by mutex_
  bool closed_ = false;        // guarded by mutex_
};

// For each lane with ops that run so, in any schedule; null for the others.
std::vector<std::unique_ptr<StreamLane>> make_stream_lanes(const Plan& plan, OpRunner& runner);

}  // namespace strata
