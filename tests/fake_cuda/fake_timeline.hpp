#pragma once
// Streams and events of a fake device. Work runs as late as it may: when somebody waits for it, or
// now and then when the fake is called, always a stream picked by a seeded generator among those
// whose next work may run. So completion has any order that streams and events allow.
//
// Whether work is ordered is told by vector clocks, not by luck: two that touch the same memory,
// one writing, must have a path of stream order and event waits between them, or a wait of the host
// for the first before the second was issued.
//
// Thread contract: the caller holds one lock over all calls.

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fake_cuda/fake_complaints.hpp"
#include "strata/core/philox.hpp"

namespace strata::testing {

enum class Touch : std::uint8_t { reads, writes };
struct FakeAccess {
  const std::byte* begin = nullptr;
  std::uint64_t bytes = 0;
  Touch touch = Touch::reads;
};

class FakeTimeline {
 public:
  struct Stream;
  struct Event;

  FakeTimeline(std::uint64_t seed, FakeComplaints& complaints)
      : random_(seed, 5), complaints_(complaints) {}

  std::shared_ptr<Stream> make_stream(int device);
  static std::shared_ptr<Event> make_event(int device);
  static int device_of(const Stream& stream);
  static int device_of(const Event& event);

  void issue(Stream& stream, const std::string& what, const std::vector<FakeAccess>& accesses,
             std::function<void()> work);
  // Work that may run only when the gate says so: others, who are no streams, bring that about. It
  // touches the memory of what was issued last.
  void issue_gated(Stream& stream, std::function<bool()> gate, std::function<void()> work);
  void record(Stream& stream, const std::shared_ptr<Event>& event);
  void wait(Stream& stream, const std::shared_ptr<Event>& event);
  // A wait that is not made. Whether it would have ordered anything that nothing else does is seen
  // when the stream gets its next work.
  void drop_wait(Stream& stream, const Event& event);
  bool dropped_wait_mattered() const { return dropped_mattered_; }

  bool waits_at_a_gate() const;

  static bool is_done(const Stream& stream);
  static bool is_reached(const Event& event);
  // False: it will never come to that.
  bool run_until_done(Stream& stream);
  bool run_until_reached(Event& event);
  static std::int64_t time_ns(const Event& event);
  void progress_by_chance();

  // The host touches memory now.
  void host_touches(const FakeAccess& access, const std::string& what);

 private:
  using Clock = std::map<int, std::uint64_t>;  // by stream: how many of its works came before
  struct Work {
    std::function<void()> run;     // or
    std::shared_ptr<Event> event;  // recorded, or waited for, as of
    std::uint64_t generation = 0;  // this record
    bool waits = false;
    std::function<bool()> gate = nullptr;
  };
  struct Live {  // an access that the host has not waited for
    FakeAccess access;
    int stream;
    std::uint64_t number;
    std::string what;
  };
  static void merge(Clock& into, const Clock& from);
  static bool covers(const Clock& clock, int stream, std::uint64_t number);
  static bool conflict(const FakeAccess& a, const FakeAccess& b);
  static bool may_run(const Stream& stream);
  void host_knows(const Clock& clock);
  void judge_dropped_wait(const Stream& stream);
  void check_order(const Stream& stream, const std::string& what, const FakeAccess& access);
  bool step();

  PhiloxStream random_;
  FakeComplaints& complaints_;
  std::vector<std::weak_ptr<Stream>> streams_;
  std::list<Live> live_;
  Clock known_;  // what the host has waited for
  int num_streams_ = 0;
  int dropped_stream_ = -1;
  Clock dropped_;
  bool dropped_mattered_ = false;
};

struct FakeTimeline::Stream {
  int id = 0, device = 0;
  std::deque<Work> queue;
  Clock clock;
  std::uint64_t issued = 0;
};

struct FakeTimeline::Event {
  int device = 0;
  std::uint64_t recorded = 0, reached = 0;
  std::int64_t reached_ns = 0;
  Clock clock;  // of the last record
};

}  // namespace strata::testing
