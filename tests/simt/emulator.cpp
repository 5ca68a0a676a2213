#include "simt/emulator.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "strata/core/error.hpp"

namespace strata::simt {
namespace {

Emulator* running_emulator = nullptr;

class Running {
 public:
  explicit Running(Emulator& emulator) { running_emulator = &emulator; }
  ~Running() { running_emulator = nullptr; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
};

bool same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && std::strcmp(a.file_name(), b.file_name()) == 0;
}

std::string text_of(const std::source_location& where) {
  const std::string_view path = where.file_name();
  return std::string(path.substr(path.rfind('/') + 1)) + ":" + std::to_string(where.line());
}

constexpr const char* verb(Touch how) {
  return how == Touch::read ? "read" : how == Touch::write ? "write" : "atomic";
}

}  // namespace

Emulator& Emulator::running() {
  ensure(running_emulator != nullptr);
  return *running_emulator;
}

// --- Launches

void Emulator::run(std::string_view kernel_name, const cuda::LaunchShape& shape,
                   const std::function<void()>& body) {
  const Running running(*this);
  kernel_name_ = kernel_name;
  shape_ = shape;
  block_ = 0;
  thread_ = 0;
  check_shape();
  fault_.reset();
  global_.trim();
  random_ = PhiloxStream(seed_, num_launches_++);
  launch_time_ = ++time_;
  while (threads_.size() < static_cast<std::size_t>(shape.threads))
    threads_.push_back(std::make_unique<EmulatedThread>());
  for (std::int64_t block : shuffled(shape.grid_x * shape.grid_y)) {
    block_ = block;
    run_block(body);
  }
}

void Emulator::check_shape() const {
  const auto refuse = [&](const char* why) {
    throw Fault(FaultKind::bad_launch, kernel_name_ + ": " + why);
  };
  const bool fits = shape_.grid_x >= 1 && shape_.grid_x < (std::int64_t{1} << 31) &&
                    shape_.grid_y >= 1 && shape_.grid_y < 65536 && shape_.threads >= 1 &&
                    shape_.threads <= threads_max && shape_.threads % warp_lanes == 0;
  if (!fits) refuse("a grid or block of a size that no device takes");
  if (shape_.shared_bytes < 0 || shape_.shared_bytes > limits_.shared_bytes_max)
    refuse("more shared memory than the device has");
}

std::vector<std::int64_t> Emulator::shuffled(std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  if (seed_ == 0) return order;
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random_.next_below(i)]);
  return order;
}

void Emulator::run_block(const std::function<void()>& body) {
  const int num_warps = shape_.threads / warp_lanes;
  const auto shared_bytes = static_cast<std::size_t>(shape_.shared_bytes);
  shared_.reset(new std::byte[shared_bytes + 16]);
  std::memset(shared_.get(), 0xff, shared_bytes);
  shared_cells_.assign(shared_bytes, ShadowCell());
  warp_values_.resize(static_cast<std::size_t>(num_warps));
  block_time_ = ++time_;
  warp_times_.assign(static_cast<std::size_t>(num_warps), time_);
  warp_order_ = shuffled(num_warps);
  lane_order_ = shuffled(warp_lanes);
  start_threads(body);
  do {
    for (std::int64_t warp : warp_order_) run_warp(static_cast<int>(warp));
  } while (release_block_barrier());
}

void Emulator::start_threads(const std::function<void()>& body) {
  for (int i = 0; i < shape_.threads; ++i) {
    EmulatedThread& started = thread(i);
    started.state = ThreadState::ready;
    started.operations = 0;
    started.committed.clear();
    started.started.clear();
    started.fiber.prepare([this, &body] { run_thread(body); });
  }
}

// The whole life of one thread of a block, on its fiber.
void Emulator::run_thread(const std::function<void()>& body) {
  try {
    body();
    const EmulatedThread& self = thread(thread_);
    if (!self.started.empty() || !self.committed.empty())
      fail(FaultKind::pending_copy, "ends while asynchronous copies are under way");
  } catch (const Fault& fault) {
    fault_ = fault;
  }
  thread(thread_).state = ThreadState::done;
}

// --- Scheduling

void Emulator::run_warp(int warp) {
  while (run_lanes(warp)) {
    if (!finish_warp_operation(warp)) return;
  }
}

// Runs each lane until it waits or ends. False: none could run.
bool Emulator::run_lanes(int warp) {
  bool any = false;
  for (std::int64_t lane : lane_order_) {
    thread_ = warp * warp_lanes + static_cast<int>(lane);
    if (thread(thread_).state != ThreadState::ready) continue;
    thread(thread_).fiber.resume();
    rethrow_fault();
    any = true;
  }
  return any;
}

void Emulator::rethrow_fault() {
  if (fault_) throw Fault(*fault_);
}

// Lets the lanes of a warp go on if they wait for each other. All must, at one place.
bool Emulator::finish_warp_operation(int warp) {
  const int first = warp * warp_lanes;
  bool waiting = false;
  for (int i = first; i < first + warp_lanes; ++i)
    waiting |= thread(i).state == ThreadState::at_warp_operation;
  if (!waiting) return false;
  for (int i = first; i < first + warp_lanes; ++i) {
    const bool together = thread(i).state == ThreadState::at_warp_operation &&
                          thread(first).state == ThreadState::at_warp_operation &&
                          same_place(thread(i).where, thread(first).where);
    if (!together) diverged(first, i == first ? first + 1 : i);
  }
  if (thread(first).operation == WarpOperation::barrier)
    warp_times_[static_cast<std::size_t>(warp)] = ++time_;
  for (int i = first; i < first + warp_lanes; ++i) thread(i).state = ThreadState::ready;
  return true;
}

// False: the block has ended. Otherwise all its threads wait at one barrier, and go on.
bool Emulator::release_block_barrier() {
  for (int i = 1; i < shape_.threads; ++i) {
    const bool together = thread(i).state == thread(0).state;
    const bool waiting = thread(i).state == ThreadState::at_block_barrier;
    if (!together || (waiting && !same_place(thread(i).where, thread(0).where))) diverged(0, i);
  }
  if (thread(0).state == ThreadState::done) return false;
  block_time_ = ++time_;
  std::ranges::fill(warp_times_, time_);
  for (int i = 0; i < shape_.threads; ++i) thread(i).state = ThreadState::ready;
  return true;
}

void Emulator::diverged(int first, int second) {
  thread_ = second;
  fail(FaultKind::divergence,
       place(second) + " while thread " + std::to_string(first) + " " + place(first));
}

std::string Emulator::place(int index) const {
  const EmulatedThread& at = *threads_[static_cast<std::size_t>(index)];
  if (at.state == ThreadState::done) return "has ended";
  return std::string("waits for its ") +
         (at.state == ThreadState::at_block_barrier ? "block" : "warp") + " at " +
         text_of(at.where);
}

void Emulator::pause(ThreadState state, const std::source_location& where) {
  EmulatedThread& self = thread(thread_);
  self.state = state;
  self.where = where;
  self.fiber.pause();
}

// --- What threads ask for

void Emulator::sync_threads(const std::source_location& where) {
  pause(ThreadState::at_block_barrier, where);
}

void Emulator::sync_warp(const std::source_location& where) {
  thread(thread_).operation = WarpOperation::barrier;
  pause(ThreadState::at_warp_operation, where);
}

// Two arrays by turns: a lane that is one operation ahead waits there for those who still read.
const WarpValues& Emulator::exchange(const LaneValue& mine, const std::source_location& where) {
  EmulatedThread& self = thread(thread_);
  WarpValues& values =
      warp_values_[static_cast<std::size_t>(thread_ / warp_lanes)][self.operations++ % 2];
  values[static_cast<std::size_t>(thread_ % warp_lanes)] = mine;
  self.operation = WarpOperation::exchange;
  pause(ThreadState::at_warp_operation, where);
  return values;
}

Toucher Emulator::toucher() const {
  const auto threads = static_cast<std::uint32_t>(shape_.threads);
  return {static_cast<std::uint32_t>(block_) * threads + static_cast<std::uint32_t>(thread_),
          threads,
          launch_time_,
          block_time_,
          warp_times_[static_cast<std::size_t>(thread_ / warp_lanes)],
          time_};
}

void Emulator::touch_global(const void* address, std::size_t element_bytes, int num_elements,
                            Touch how) {
  const auto* byte = static_cast<const std::byte*>(address);
  const Toucher by = toucher();
  for (int i = 0; i < num_elements; ++i, byte += element_bytes) {
    if (!global_.at(byte).touch(by, how))
      fail(FaultKind::race, std::string(verb(how)) + " of global memory races with another thread");
  }
}

void Emulator::touch_shared(std::int64_t offset, std::size_t element_bytes, int num_elements,
                            Touch how) {
  const Toucher by = toucher();
  for (int i = 0; i < num_elements; ++i) {
    const std::size_t at =
        static_cast<std::size_t>(offset) + static_cast<std::size_t>(i) * element_bytes;
    ShadowCell& cell = shared_cells_[at];
    if (how == Touch::read && !cell.is_written())
      fail(FaultKind::uninitialized, "reads shared byte " + std::to_string(at) + ", never written");
    if (!cell.touch(by, how))
      fail(FaultKind::race, std::string(verb(how)) + " of shared byte " + std::to_string(at) +
                                " races with another thread");
  }
}

void Emulator::start_copy(const AsyncCopy& copy) { thread(thread_).started.push_back(copy); }

void Emulator::commit_copies() {
  EmulatedThread& self = thread(thread_);
  self.committed.push_back(std::move(self.started));
  self.started.clear();
}

// In order, and not before they are waited for: who reads earlier finds what was there.
void Emulator::wait_copies(std::size_t pending_groups) {
  EmulatedThread& self = thread(thread_);
  while (self.committed.size() > pending_groups) finish_group(self);
}

void Emulator::finish_group(EmulatedThread& self) {
  for (const AsyncCopy& copy : self.committed.front()) {
    std::memcpy(copy.to, copy.from, 16);
    touch_shared(copy.shared_offset, copy.element_bytes, static_cast<int>(16 / copy.element_bytes),
                 Touch::write);
  }
  self.committed.erase(self.committed.begin());
}

void Emulator::fail(FaultKind kind, const std::string& what) const {
  throw Fault(kind, kernel_name_ + ", block (" + std::to_string(block_x()) + ", " +
                        std::to_string(block_y()) + "), thread " + std::to_string(thread_) + ": " +
                        what);
}

}  // namespace strata::simt
