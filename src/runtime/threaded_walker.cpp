#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/lane_walker.hpp"
#include "runtime/stream_lane.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "strata/plan/late_lane.hpp"

namespace strata {
namespace {

constexpr std::uint64_t wake_all = std::uint64_t{1}
                                   << 62;  // added to every counter on failure: no wait lasts
constexpr std::int64_t wait_noticed_ns = 20'000;
constexpr std::size_t steps_kept = 4;

class ThreadedWalker;

// What is known of an op across steps. The same op of the next step never starts before this one's
// is complete: both touch the same slot.
struct OpTrack final : public IoCompletion {
  void complete(const IoResult& result) noexcept override;

  std::atomic<std::uint64_t> completed{0};  // steps
  std::atomic<std::int64_t> end_ns{0};      // of the last that is complete
  ThreadedWalker* walker = nullptr;
  const Op* op = nullptr;
  StepState* step = nullptr;               // the step in flight, for transfers
  std::atomic<bool> in_flight{false};      // a transfer that the store has
  std::atomic<Lane> blame{Lane::compute};  // the lane that kept this op waiting last, or its own
  // Of what streams carry out: steps that were issued, and the op's number on its lane in this one
  // and the one before, by parity of the run. A number is written before `issued` tells of it.
  bool is_asynchronous = false, looks_at_host = false;
  std::atomic<std::uint64_t> issued{0};
  std::array<std::atomic<std::uint64_t>, 2> flights{};
};

// The longest wait of an op, and for whom.
struct LongestWait {
  std::int64_t ns = 0;
  Lane late = Lane::compute;
};

// All but that of checkpoints, which many plans do without.
std::vector<std::size_t> walked_lanes(const Plan& plan) {
  constexpr auto save = static_cast<std::size_t>(Lane::save);
  const bool saves = std::ranges::any_of(
      plan.schedules, [&](const Schedule& schedule) { return !schedule.lanes[save].empty(); });
  std::vector<std::size_t> lanes;
  for (std::size_t lane = 0; lane < num_lanes; ++lane)
    if (lane != save || saves) lanes.push_back(lane);
  return lanes;
}

class ThreadedWalker final : public LaneWalker {
 public:
  ThreadedWalker(const Plan& plan, OpRunner& runner, const ExecutorOptions& options)
      : plan_(plan),
        runner_(runner),
        on_lane_start_(options.on_lane_start),
        after_op_(options.after_op),
        lanes_(walked_lanes(plan)),
        stream_lanes_(make_stream_lanes(plan, runner)) {
    for (const Schedule& schedule : plan.schedules) {
      report_ops_.push_back(report_op(schedule));
      tracks_.emplace_back(schedule.ops.size());
      for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
        tracks_.back()[i].walker = this;
        tracks_.back()[i].op = &schedule.ops[i];
        tracks_.back()[i].is_asynchronous = runner.is_asynchronous(schedule.ops[i]);
        tracks_.back()[i].looks_at_host = runner.looks_at_host(schedule.ops[i]);
      }
    }
    try {
      for (const std::size_t lane : lanes_) threads_.emplace_back([this, lane] { walk(lane); });
      for (const auto& lane : stream_lanes_)
        if (lane != nullptr) completions_.emplace_back([this, &lane] { complete(*lane); });
    } catch (...) {  // The system has no thread left: those that run must end first.
      fail("the run was ended");
      stop_lanes();
      throw;
    }
  }

  ~ThreadedWalker() override {
    fail("the run was ended");
    stop_lanes();
  }

  void submit(StepState& step) override {
    rethrow_failure();
    // A lane's end counts like an op: else one with nothing to do in several steps might fall
    // behind by more than are kept, and take a later step for its own.
    step.ops_left += std::ssize(lanes_);
    const std::uint64_t number = submitted_.load();
    steps_[number % steps_kept].store(&step);
    submitted_.store(number + 1);
    submitted_.notify_all();
  }
  void wait_reported(const StepState& step) override {
    std::unique_lock lock(mutex_);
    progress_.wait(lock, [&] { return failed_ || reported(step); });
    lock.unlock();
    rethrow_failure();
  }
  void wait_complete(const StepState& step) override {
    std::unique_lock lock(mutex_);
    progress_.wait(lock, [&] { return failed_ || step.ops_left == 0; });
    lock.unlock();
    rethrow_failure();
  }

  void finish(OpTrack& track, StepState& step, std::int64_t end_ns) {
    const bool report = track.op->kind == OpKind::report;
    track.end_ns.store(end_ns, std::memory_order_relaxed);
    track.completed.fetch_add(1, std::memory_order_release);
    track.completed.notify_all();
    const bool last = step.ops_left.fetch_sub(1) == 1;
    if (report || last) tell_progress();
  }

  void transfer_done(OpTrack& track, const IoResult& result) noexcept {
    track.in_flight = false;  // First: once it counts as complete, its next step may begin.
    const std::int64_t end = io_lane_busy(track.op->lane, *track.step, -1);
    span(track).end_ns = end;
    if (!result.ok()) op_failed(runner_.failure(*track.op, *track.step, result.message));
    finish(track, *track.step, end);
    transfer_ended();
  }

 private:
  struct LaneClock {  // time with at least one transfer in flight
    std::mutex mutex;
    int in_flight = 0;
    std::int64_t since = 0;
  };

  void tell_progress() {
    std::lock_guard lock(mutex_);
    progress_.notify_all();
  }

  bool reported(const StepState& step) const {
    const OpTrack& report = tracks_[step.schedule][report_ops_[step.schedule].index()];
    return report.completed.load(std::memory_order_acquire) > step.run_index;
  }

  void walk(std::size_t lane) {
    if (on_lane_start_) on_lane_start_(static_cast<Lane>(lane));
    use_device();
    for (std::uint64_t number = 0;; ++number) {
      for (std::uint64_t seen = submitted_.load(); seen <= number; seen = submitted_.load())
        submitted_.wait(seen);
      if (failed_) return;
      StepState& step = *steps_[number % steps_kept].load();
      for (OpId id : plan_.schedules[step.schedule].lanes[lane]) {
        OpTrack& track = tracks_[step.schedule][id.index()];
        if (track.is_asynchronous)
          give_to_stream(track, step);
        else
          carry_out(track, step);
        if (failed_) return;
      }
      if (step.ops_left.fetch_sub(1) == 1) tell_progress();
    }
  }

  // By each thread once: its device is nobody else's to change.
  void use_device() {
    try {
      runner_.device().use_on_this_thread();
    } catch (const std::exception& error) {
      op_failed(error.what());
    }
  }

  void carry_out(OpTrack& track, StepState& step) {
    // First: until then the lane's times are those of its stream's thread.
    if (StreamLane* const lane = stream_lane(*track.op)) lane->await_idle();
    await_edges(track, step);
    if (!failed_) issue(track, step);
  }

  void await_edges(OpTrack& track, StepState& step) {
    const Op& op = *track.op;
    LongestWait longest{0, op.lane};
    for (const Edge& edge : op.after) {
      OpTrack& from = tracks_[step.schedule][edge.op.index()];
      count_wait(op, step, from, await(from.completed, steps_of(edge, step)), longest);
    }
    track.blame.store(late_lane(op).begin(op.lane, longest.ns, longest.late),
                      std::memory_order_relaxed);
  }
  static void count_wait(const Op& op, StepState& step, const OpTrack& from, std::int64_t waited,
                         LongestWait& longest) {
    if (waited == 0) return;
    // A lane that waits is not what it waits for: its own part was over before the wait began.
    const Lane blamed = from.blame.load(std::memory_order_relaxed);
    const Lane cause = blamed == op.lane ? from.op->lane : blamed;
    if (op.lane == Lane::compute) step.compute_wait_ns[static_cast<std::size_t>(cause)] += waited;
    if (waited > std::max(longest.ns, wait_noticed_ns)) longest = {waited, cause};
  }
  // How many steps of an edge's op are over when the edge is met.
  static std::uint64_t steps_of(const Edge& edge, const StepState& step) {
    return step.run_index + 1 - static_cast<std::uint64_t>(edge.steps_back);
  }
  StreamLane* stream_lane(const Op& op) const {
    return stream_lanes_[static_cast<std::size_t>(op.lane)].get();
  }
  LateLane<std::int64_t>& late_lane(const Op& op) {
    return late_lanes_[static_cast<std::size_t>(op.lane)];
  }

  static std::int64_t await(const std::atomic<std::uint64_t>& reached, std::uint64_t steps) {
    std::uint64_t seen = reached.load(std::memory_order_acquire);
    if (seen >= steps) return 0;
    const std::int64_t start = now_ns();
    for (; seen < steps; seen = reached.load(std::memory_order_acquire)) reached.wait(seen);
    return now_ns() - start;
  }

  // Waits on this thread only for what the host does; for other streams the op's own stream waits.
  void give_to_stream(OpTrack& track, StepState& step) {
    const std::int64_t reached = now_ns();
    StreamLane& lane = *stream_lane(*track.op);
    lane.enter();
    for (const Edge& edge : track.op->after) {
      const OpTrack& from = tracks_[step.schedule][edge.op.index()];
      const bool on_stream = from.is_asynchronous && !track.looks_at_host;
      await(on_stream ? from.issued : from.completed, steps_of(edge, step));
    }
    if (failed_) return;
    const std::size_t run = step.run_index % 2;
    try {
      for (const Edge& edge : track.op->after) hold(*track.op, edge, step);
      lane.begin();
      runner_.issue(*track.op, step);
      track.flights[run].store(lane.end({track.op, &step, reached}), std::memory_order_relaxed);
    } catch (const std::exception& error) {
      return op_failed(runner_.failure(*track.op, step, error.what()));
    }
    track.issued.fetch_add(1, std::memory_order_release);
    track.issued.notify_all();
  }
  void hold(const Op& op, const Edge& edge, const StepState& step) {
    const OpTrack& from = tracks_[step.schedule][edge.op.index()];
    const std::uint64_t steps = steps_of(edge, step);
    if (!from.is_asynchronous || from.op->lane == op.lane || steps == 0) return;
    stream_lane(*from.op)->hold(runner_.stream(op),
                                from.flights[(steps - 1) % 2].load(std::memory_order_relaxed));
  }

  // Sees to it that what a stream has done counts as complete.
  void complete(StreamLane& lane) {
    use_device();
    std::int64_t free_ns = 0;  // when the stream was done with the op before
    while (const auto flight = lane.oldest()) {
      try {
        const OpSpan span = lane.await_oldest();
        runner_.confirm(*flight->op);
        stream_is_done(*flight, span, free_ns);
        free_ns = span.end_ns;
      } catch (const std::exception& error) {
        op_failed(runner_.failure(*flight->op, *flight->step, error.what()) +
                  others_in_flight(lane));
      }
      lane.retire();
    }
  }
  void stream_is_done(const StreamLane::Flight& flight, const OpSpan& span, std::int64_t free_ns) {
    OpTrack& track = tracks_[flight.step->schedule][flight.op->id.index()];
    count_stream_waits(track, flight, span, std::max(free_ns, flight.reached_ns));
    flight.step->ran(*flight.op, span);
    late_lane(*flight.op).worked(span.end_ns - span.start_ns);
    finish(track, *flight.step, span.end_ns);
  }
  // What the stream waited for is complete, but perhaps not yet known to be.
  void count_stream_waits(OpTrack& track, const StreamLane::Flight& flight, const OpSpan& span,
                          std::int64_t idle_from) {
    const Op& op = *flight.op;
    LongestWait longest{0, op.lane};
    for (const Edge& edge : op.after) {
      const OpTrack& from = tracks_[flight.step->schedule][edge.op.index()];
      await(from.completed, steps_of(edge, *flight.step));
      const std::int64_t end = std::min(from.end_ns.load(std::memory_order_relaxed), span.start_ns);
      if (end <= idle_from) continue;
      count_wait(op, *flight.step, from, end - idle_from, longest);
      idle_from = end;
    }
    track.blame.store(late_lane(op).begin(op.lane, longest.ns, longest.late),
                      std::memory_order_relaxed);
  }
  // A device's failure shows on every stream, whosever work it was.
  std::string others_in_flight(const StreamLane& failed) const {
    std::string text;
    for (const auto& lane : stream_lanes_) {
      if (lane == nullptr || lane.get() == &failed) continue;
      if (const auto flight = lane->peek())
        text += (text.empty() ? "; in flight beside it: " : "; ") + runner_.describe(*flight->op);
    }
    return text;
  }

  void issue(OpTrack& track, StepState& step) {
    try {
      if (is_nvme_lane(track.op->lane)) return start_transfer(track, step);
      const std::int64_t start = now_ns();
      runner_.run(*track.op, step);
      if (after_op_) after_op_(*track.op, start);
      const std::int64_t end = now_ns();
      step.ran(*track.op, {start, end});
      late_lane(*track.op).worked(end - start);
      finish(track, step, end);
    } catch (const std::exception& error) {
      op_failed(runner_.failure(*track.op, step, error.what()));
    }
  }

  void start_transfer(OpTrack& track, StepState& step) {
    track.step = &step;
    span(track).start_ns = io_lane_busy(track.op->lane, step, +1);
    transfer_begins(track);
    try {
      runner_.start_transfer(*track.op, step, track);
    } catch (const std::exception& error) {  // Refused: the store does not have it.
      op_failed(runner_.failure(*track.op, step, error.what()));
      track.in_flight = false;
      transfer_ended();
    }
  }

  void transfer_begins(OpTrack& track) {
    std::lock_guard lock(mutex_);
    ++transfers_in_flight_;
    track.in_flight = true;
  }
  // Told under the lock: once none is in flight, the walker may be gone.
  void transfer_ended() {
    std::lock_guard lock(mutex_);
    --transfers_in_flight_;
    if (failed_) progress_.notify_all();
  }

  static OpSpan& span(const OpTrack& track) { return track.step->spans[track.op->id.index()]; }

  // Returns the time of the change.
  std::int64_t io_lane_busy(Lane lane, StepState& step, int change) {
    LaneClock& clock = lane_clocks_[static_cast<std::size_t>(lane)];
    std::lock_guard lock(clock.mutex);
    const std::int64_t now = now_ns();
    if (clock.in_flight > 0) step.busy_ns[static_cast<std::size_t>(lane)] += now - clock.since;
    clock.since = now;
    clock.in_flight += change;
    return now;
  }

  // Lanes of this rank and of others may wait inside a collective. The other ranks have the reason
  // before the caller has the error: it may go on to end this rank.
  void op_failed(const std::string& text) {
    if (fail(text)) runner_.abort_ranks(text);
  }
  // The first failure is the one to tell of. Returns whether this is it.
  bool fail(const std::string& text) {
    std::lock_guard lock(mutex_);
    const bool first = failure_.empty();
    if (first) failure_ = text;
    stop_waiting();
    return first;
  }
  void stop_waiting() {
    if (failed_.exchange(true)) return;
    for (auto& schedule : tracks_)
      for (OpTrack& track : schedule) {
        for (std::atomic<std::uint64_t>* const steps : {&track.completed, &track.issued}) {
          steps->fetch_add(wake_all);
          steps->notify_all();
        }
      }
    progress_.notify_all();
  }
  // What is in flight ends first: the caller may free arguments and memory once it has the error.
  void rethrow_failure() {
    if (!failed_) return;
    stop_lanes();
    throw Error(failure_);
  }
  void stop_lanes() {
    if (threads_.empty()) return;
    submitted_.fetch_add(wake_all);
    submitted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    stop_streams();
    cancel_transfers();
    std::unique_lock lock(mutex_);
    progress_.wait(lock, [&] { return transfers_in_flight_ == 0; });
  }
  // Once no lane issues any more.
  void stop_streams() {
    for (const auto& lane : stream_lanes_)
      if (lane != nullptr) lane->close();
    for (std::thread& thread : completions_) thread.join();
    completions_.clear();
    runner_.drain_streams();
  }
  // A queue of write-backs may hold seconds of work that nobody needs any more.
  void cancel_transfers() {
    for (auto& schedule : tracks_)
      for (const OpTrack& track : schedule)
        if (track.in_flight) runner_.cancel_transfer(track);
  }

  const Plan& plan_;
  OpRunner& runner_;
  const std::function<void(Lane)> on_lane_start_;
  const std::function<void(const Op&, std::int64_t)> after_op_;
  const std::vector<std::size_t> lanes_;                         // each has a thread
  const std::vector<std::unique_ptr<StreamLane>> stream_lanes_;  // by lane; may be null
  std::vector<std::vector<OpTrack>> tracks_;                     // [schedule][op]
  std::vector<OpId> report_ops_;                                 // [schedule]
  std::array<std::atomic<StepState*>, steps_kept> steps_{};
  std::atomic<std::uint64_t> submitted_{0};
  std::array<LaneClock, num_lanes> lane_clocks_;
  std::array<LateLane<std::int64_t>, num_lanes> late_lanes_;  // each its thread's
  std::atomic<bool> failed_{false};

  std::mutex mutex_;
  std::condition_variable progress_;
  std::string failure_;          // guarded by mutex_ while lanes run or transfers are in flight
  int transfers_in_flight_ = 0;  // guarded by mutex_

  std::vector<std::thread> threads_, completions_;  // one per lane; one per lane with a stream
};

void OpTrack::complete(const IoResult& result) noexcept { walker->transfer_done(*this, result); }

}  // namespace

std::unique_ptr<LaneWalker> make_threaded_walker(const Plan& plan, OpRunner& runner,
                                                 const ExecutorOptions& options) {
  return std::make_unique<ThreadedWalker>(plan, runner, options);
}

}  // namespace strata
