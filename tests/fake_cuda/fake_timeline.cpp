#include "fake_cuda/fake_timeline.hpp"

#include <algorithm>

#include "strata/core/clock.hpp"

namespace strata::testing {

std::shared_ptr<FakeTimeline::Stream> FakeTimeline::make_stream(int device) {
  auto stream = std::make_shared<Stream>();
  stream->id = num_streams_++;
  stream->device = device;
  streams_.push_back(stream);
  return stream;
}

std::shared_ptr<FakeTimeline::Event> FakeTimeline::make_event(int device) {
  const auto event = std::make_shared<Event>();
  event->device = device;
  return event;
}

int FakeTimeline::device_of(const Stream& stream) { return stream.device; }
int FakeTimeline::device_of(const Event& event) { return event.device; }

void FakeTimeline::issue(Stream& stream, const std::string& what,
                         const std::vector<FakeAccess>& accesses, std::function<void()> work) {
  judge_dropped_wait(stream);
  for (const FakeAccess& access : accesses) check_order(stream, what, access);
  const std::uint64_t number = ++stream.issued;
  stream.clock[stream.id] = number;
  for (const FakeAccess& access : accesses) live_.push_back({access, stream.id, number, what});
  stream.queue.push_back({std::move(work), nullptr, 0, false});
}

void FakeTimeline::issue_gated(Stream& stream, std::function<bool()> gate,
                               std::function<void()> work) {
  stream.queue.push_back({std::move(work), nullptr, 0, false, std::move(gate)});
}

void FakeTimeline::record(Stream& stream, const std::shared_ptr<Event>& event) {
  event->clock = stream.clock;
  stream.queue.push_back({nullptr, event, ++event->recorded, false});
}

// Of an event that was never recorded there is nothing to wait for, as in CUDA.
void FakeTimeline::wait(Stream& stream, const std::shared_ptr<Event>& event) {
  if (event->recorded == 0) return complaints_.add("a stream waits for an event before its record");
  merge(stream.clock, event->clock);
  stream.queue.push_back({nullptr, event, event->recorded, true});
}

void FakeTimeline::drop_wait(Stream& stream, const Event& event) {
  dropped_stream_ = stream.id;
  dropped_ = event.clock;
}

// Work that other waits of the stream, or the host, have seen to was not this wait's to order.
void FakeTimeline::judge_dropped_wait(const Stream& stream) {
  if (stream.id != dropped_stream_) return;
  dropped_stream_ = -1;
  for (const auto& [other, number] : dropped_)
    if (other != stream.id && !covers(stream.clock, other, number) &&
        !covers(known_, other, number))
      dropped_mattered_ = true;
}

bool FakeTimeline::waits_at_a_gate() const {
  return std::ranges::any_of(streams_, [](const auto& weak) {
    const auto stream = weak.lock();
    return stream && !stream->queue.empty() && stream->queue.front().gate;
  });
}

bool FakeTimeline::is_done(const Stream& stream) { return stream.queue.empty(); }
bool FakeTimeline::is_reached(const Event& event) { return event.reached == event.recorded; }
std::int64_t FakeTimeline::time_ns(const Event& event) { return event.reached_ns; }

bool FakeTimeline::run_until_done(Stream& stream) {
  const Clock all = stream.clock;
  while (!is_done(stream))
    if (!step()) return false;
  host_knows(all);
  return true;
}

bool FakeTimeline::run_until_reached(Event& event) {
  const Clock all = event.clock;
  const std::uint64_t generation = event.recorded;
  while (event.reached < generation)
    if (!step()) return false;
  host_knows(all);
  return true;
}

void FakeTimeline::progress_by_chance() {
  if (random_.next_below(8) == 0) step();
}

void FakeTimeline::host_touches(const FakeAccess& access, const std::string& what) {
  for (const Live& live : live_)
    if (conflict(live.access, access))
      complaints_.add("the host does not wait: " + what + " touches memory of " + live.what);
}

void FakeTimeline::merge(Clock& into, const Clock& from) {
  for (const auto& [stream, number] : from) {
    std::uint64_t& own = into[stream];
    own = std::max(own, number);
  }
}

bool FakeTimeline::covers(const Clock& clock, int stream, std::uint64_t number) {
  const auto found = clock.find(stream);
  return found != clock.end() && found->second >= number;
}

bool FakeTimeline::conflict(const FakeAccess& a, const FakeAccess& b) {
  return (a.touch == Touch::writes || b.touch == Touch::writes) && a.begin < b.begin + b.bytes &&
         b.begin < a.begin + a.bytes;
}

bool FakeTimeline::may_run(const Stream& stream) {
  if (stream.queue.empty()) return false;
  const Work& next = stream.queue.front();
  if (next.gate) return next.gate();
  return !next.waits || next.event->reached >= next.generation;
}

void FakeTimeline::host_knows(const Clock& clock) {
  merge(known_, clock);
  live_.remove_if([&](const Live& live) { return covers(known_, live.stream, live.number); });
}

void FakeTimeline::check_order(const Stream& stream, const std::string& what,
                               const FakeAccess& access) {
  for (const Live& live : live_)
    if (live.stream != stream.id && conflict(live.access, access) &&
        !covers(stream.clock, live.stream, live.number))
      complaints_.add("missing wait: " + what + " touches memory of " + live.what +
                      " on another stream");
}

bool FakeTimeline::step() {
  std::vector<std::shared_ptr<Stream>> ready;
  std::erase_if(streams_, [](const auto& stream) { return stream.expired(); });
  for (const auto& weak : streams_)
    if (auto stream = weak.lock(); stream && may_run(*stream)) ready.push_back(std::move(stream));
  if (ready.empty()) return false;
  Stream& stream = *ready[random_.next_below(ready.size())];
  const Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (work.run) work.run();
  if (work.event && !work.waits) {
    work.event->reached = std::max(work.event->reached, work.generation);
    work.event->reached_ns = now_ns();
  }
  return true;
}

}  // namespace strata::testing
