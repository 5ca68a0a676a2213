#include "fake_cuda/fake_cuda.hpp"

#include <chrono>
#include <cstring>

#include "strata/core/bytes.hpp"

namespace strata::testing {
namespace {

constexpr auto invalid_value = static_cast<CudaStatus>(1);
constexpr auto invalid_device = static_cast<CudaStatus>(101);
constexpr auto not_ready = static_cast<CudaStatus>(600);
constexpr auto launch_failure = static_cast<CudaStatus>(719);

const std::byte* bytes_of(const void* data) { return static_cast<const std::byte*>(data); }

}  // namespace

FakeCuda::FakeCuda(const FakeCudaOptions& options)
    : options_(options), timeline_(options.seed, complaints_) {}

FakeCuda::~FakeCuda() = default;

void FakeCuda::launch(CudaStreamHandle stream, const std::string& what,
                      const std::vector<FakeAccess>& accesses, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  ++num_launches_;
  if (last_errors_.contains(std::this_thread::get_id()))
    complaints_.add(what + " is blamed for an error of before that nobody has taken");
  Stream* const own = find(stream);
  if (own == nullptr) return;
  if (FakeTimeline::device_of(*own) != current_device())
    complaints_.add(what + " is launched on a stream of another device than the thread's");
  for (const FakeAccess& access : accesses) fits_kernel(access, what);
  issue(*own, what, accesses, std::move(work));
}

void FakeCuda::launch_joint(CudaStreamHandle stream, const std::string& what,
                            const std::vector<FakeAccess>& accesses, const JointWork& work) {
  const std::lock_guard lock(mutex_);
  Stream* const own = find(stream);
  if (own == nullptr) return;
  for (const FakeAccess& access : accesses) fits_kernel(access, what);
  timeline_.issue(*own, what, accesses, [] {});
  timeline_.issue_gated(*own, work.may_begin, with_open(accesses, work.begin));
  timeline_.issue_gated(*own, work.may_end, with_open(accesses, work.end));
  issued_.notify_all();
}

void FakeCuda::host_touches(const FakeAccess& access, const std::string& what) {
  const std::lock_guard lock(mutex_);
  timeline_.host_touches(access, what);
}

void FakeCuda::refuse_pinning(std::span<const std::byte> memory) {
  const std::lock_guard lock(mutex_);
  unpinnable_.push_back(memory);
}

void FakeCuda::forbid_waiting(const std::string& thread_name) {
  const std::lock_guard lock(mutex_);
  threads_that_must_not_wait_[std::this_thread::get_id()] = thread_name;
}

std::vector<std::string> FakeCuda::leaks() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> found;
  const auto note = [&](std::size_t count, const std::string& what) {
    if (count > 0) found.push_back(std::to_string(count) + " " + what);
  };
  note(streams_.size(), "streams");
  note(events_.size(), "events");
  for (const auto& [device, memory] : memory_) {
    note(memory.num_allocations(), "allocations on device " + std::to_string(device));
    note(memory.num_registrations(), "registrations of host memory");
  }
  for (const auto& [thread, open] : open_ranges_)
    note(static_cast<std::size_t>(open), "open ranges of a thread");
  return found;
}

std::uint64_t FakeCuda::num_launches() const {
  const std::lock_guard lock(mutex_);
  return num_launches_;
}
std::uint64_t FakeCuda::num_calls() const {
  const std::lock_guard lock(mutex_);
  return num_calls_;
}
std::uint64_t FakeCuda::num_waits() const {
  const std::lock_guard lock(mutex_);
  return num_waits_;
}
std::uint64_t FakeCuda::num_host_waits() const {
  const std::lock_guard lock(mutex_);
  return num_host_waits_;
}
bool FakeCuda::dropped_wait_mattered() const {
  const std::lock_guard lock(mutex_);
  return timeline_.dropped_wait_mattered();
}
std::vector<std::string> FakeCuda::ranges() const {
  const std::lock_guard lock(mutex_);
  return ranges_;
}

CudaStatus FakeCuda::device_count(int& count) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  count = options_.num_devices;
  return CudaStatus::success;
}

CudaStatus FakeCuda::versions(CudaVersions& versions) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  versions = {13000, 12080};
  return CudaStatus::success;
}

CudaStatus FakeCuda::device_facts(int ordinal, CudaDeviceFacts& facts) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  facts = {ordinal,
           "Fake GPU",
           "0000:0" + std::to_string(ordinal) + ":00.0",
           9,
           0,
           132,
           3,
           options_.memory_bytes,
           0,
           {}};
  return CudaStatus::success;
}

CudaStatus FakeCuda::set_device(int ordinal) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  if (ordinal < 0 || ordinal >= options_.num_devices) return invalid_device;
  devices_of_threads_[std::this_thread::get_id()] = ordinal;
  return CudaStatus::success;
}

// Until it is so; false: it never will be.
template <typename Run>
bool FakeCuda::run(Lock& lock, const Run& run) {
  while (!run()) {
    if (!timeline_.waits_at_a_gate()) return false;
    issued_.wait_for(lock, std::chrono::microseconds(200));
  }
  return true;
}

void FakeCuda::run_device(Lock& lock, int device) {
  std::vector<std::shared_ptr<Stream>> own;
  for (const auto& [handle, stream] : streams_)
    if (FakeTimeline::device_of(*stream) == device) own.push_back(stream);
  for (const auto& stream : own) run(lock, [&] { return timeline_.run_until_done(*stream); });
}

CudaStatus FakeCuda::synchronize() {
  Lock lock(mutex_);
  const bool failing = fails();
  run_device(lock, current_device());
  return failing ? launch_failure : CudaStatus::success;
}

CudaStatus FakeCuda::memory_info(std::uint64_t& free_bytes, std::uint64_t& total_bytes) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  total_bytes = options_.memory_bytes;
  free_bytes = total_bytes - memory_of(current_device()).used_bytes();
  return CudaStatus::success;
}

CudaStatus FakeCuda::can_access_peer(int ordinal, int peer, bool& can) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  can = ordinal != peer;
  return CudaStatus::success;
}

CudaStatus FakeCuda::has_native_atomics(int, int, bool& has) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  has = true;
  return CudaStatus::success;
}

CudaStatus FakeCuda::enable_peer_access(int peer) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  return peer < options_.num_devices && peer != current_device() ? CudaStatus::success
                                                                 : invalid_device;
}

CudaStatus FakeCuda::stream_create(CudaStreamHandle& stream) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  const auto made = timeline_.make_stream(current_device());
  stream = made.get();
  streams_[stream] = made;
  return CudaStatus::success;
}

// What it has to do is done all the same.
CudaStatus FakeCuda::stream_destroy(CudaStreamHandle stream) {
  Lock lock(mutex_);
  const bool failing = fails();
  Stream* const own = find(stream);
  if (own == nullptr) return invalid_value;
  run(lock, [&] { return timeline_.run_until_done(*own); });
  streams_.erase(stream);
  return failing ? launch_failure : CudaStatus::success;
}

CudaStatus FakeCuda::stream_synchronize(CudaStreamHandle stream) {
  Lock lock(mutex_);
  if (fails()) return launch_failure;
  Stream* const own = find(stream);
  if (own == nullptr) return invalid_value;
  check_wait(FakeTimeline::is_done(*own));
  return run(lock, [&] { return timeline_.run_until_done(*own); })
             ? CudaStatus::success
             : complain("a stream is stuck: nothing can run");
}

CudaStatus FakeCuda::stream_wait_event(CudaStreamHandle stream, CudaEventHandle event) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  Stream* const own = find(stream);
  const auto awaited = find_event(event);
  if (own == nullptr || awaited == nullptr) return invalid_value;
  if (num_waits_++ == options_.dropped_wait)
    timeline_.drop_wait(*own, *awaited);
  else
    timeline_.wait(*own, awaited);
  return CudaStatus::success;
}

CudaStatus FakeCuda::event_create(CudaEventHandle& event) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  const auto made = FakeTimeline::make_event(current_device());
  event = made.get();
  events_[event] = made;
  return CudaStatus::success;
}

CudaStatus FakeCuda::event_destroy(CudaEventHandle event) {
  const std::lock_guard lock(mutex_);
  const bool failing = fails();
  if (events_.erase(event) == 0) return complain("an event is given back that is none");
  return failing ? launch_failure : CudaStatus::success;
}

CudaStatus FakeCuda::event_record(CudaEventHandle event, CudaStreamHandle stream) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  Stream* const own = find(stream);
  const auto point = find_event(event);
  if (own == nullptr || point == nullptr) return invalid_value;
  timeline_.record(*own, point);
  return CudaStatus::success;
}

CudaStatus FakeCuda::event_synchronize(CudaEventHandle event) {
  Lock lock(mutex_);
  if (fails()) return launch_failure;
  const auto awaited = find_event(event);
  if (awaited == nullptr) return invalid_value;
  if (num_host_waits_++ == options_.dropped_host_wait) return CudaStatus::success;
  check_wait(FakeTimeline::is_reached(*awaited));
  return run(lock, [&] { return timeline_.run_until_reached(*awaited); })
             ? CudaStatus::success
             : complain("an event is stuck: nothing can run");
}

// Who asks has not waited: what came before may not be used by the host.
CudaStatus FakeCuda::event_query(CudaEventHandle event, bool& is_reached) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  const auto awaited = find_event(event);
  if (awaited == nullptr) return invalid_value;
  is_reached = FakeTimeline::is_reached(*awaited);
  return CudaStatus::success;
}

CudaStatus FakeCuda::elapsed_ms(float& ms, CudaEventHandle begin, CudaEventHandle end) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  const auto first = find_event(begin), second = find_event(end);
  if (first == nullptr || second == nullptr) return invalid_value;
  const bool are_reached = FakeTimeline::is_reached(*first) && FakeTimeline::is_reached(*second);
  if (!are_reached && !options_.dropped_host_wait) return not_ready;
  const std::int64_t ns = FakeTimeline::time_ns(*second) - FakeTimeline::time_ns(*first);
  ms = static_cast<float>(static_cast<double>(ns) * 1e-6);
  return CudaStatus::success;
}

CudaStatus FakeCuda::allocate(void*& data, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  data = memory_of(current_device()).allocate(bytes, options_.memory_bytes);
  return data == nullptr ? refuse_memory() : CudaStatus::success;
}

CudaStatus FakeCuda::release(void* data) {
  Lock lock(mutex_);
  const bool failing = fails();
  for (auto& [device, memory] : memory_) {
    if (memory.kind_of(data) != CudaPointer::device) continue;
    run_device(lock, device);  // as cudaFree
    if (memory.release(data)) return failing ? launch_failure : CudaStatus::success;
  }
  return complain("device memory is given back that is none");
}

CudaStatus FakeCuda::register_host(void* data, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  const std::byte *const begin = bytes_of(data), *const end = begin + bytes;
  for (const auto& refused : unpinnable_)
    if (begin < refused.data() + refused.size() && refused.data() < end) return refuse_memory();
  return memory_of(0).register_host(data, bytes) ? CudaStatus::success
                                                 : complain("host memory is registered twice");
}

CudaStatus FakeCuda::unregister_host(void* data) {
  const std::lock_guard lock(mutex_);
  const bool failing = fails();
  for (const auto& [handle, stream] : streams_)
    if (FakeTimeline::device_of(*stream) == current_device() && !FakeTimeline::is_done(*stream))
      complaints_.add("host memory is unregistered while streams may need it");
  if (!memory_of(0).unregister_host(data))
    return complain("host memory is unregistered that is not registered");
  return failing ? launch_failure : CudaStatus::success;
}

CudaStatus FakeCuda::pointer_kind(const void* data, CudaPointer& kind) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  kind = CudaPointer::unregistered;
  for (const auto& [device, memory] : memory_)
    if (kind == CudaPointer::unregistered) kind = memory.kind_of(data);
  return CudaStatus::success;
}

CudaStatus FakeCuda::copy(void* target, const void* source, std::uint64_t bytes, CudaCopy kind,
                          CudaStreamHandle stream) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  Stream* const own = find(stream);
  if (own == nullptr) return invalid_value;
  const std::string what = "a copy of " + std::to_string(bytes) + " bytes";
  const bool from_host = kind == CudaCopy::host_to_device,
             to_host = kind == CudaCopy::device_to_host;
  if (!fits(from_host ? CudaPointer::pinned : CudaPointer::device, source, bytes, what) ||
      !fits(to_host ? CudaPointer::pinned : CudaPointer::device, target, bytes, what))
    return invalid_value;
  issue(*own, what,
        {{bytes_of(source), bytes, Touch::reads}, {bytes_of(target), bytes, Touch::writes}},
        [=] { std::memcpy(target, source, bytes); });
  return CudaStatus::success;
}

CudaStatus FakeCuda::fill(void* target, std::uint8_t value, std::uint64_t bytes,
                          CudaStreamHandle stream) {
  const std::lock_guard lock(mutex_);
  if (fails()) return launch_failure;
  Stream* const own = find(stream);
  if (own == nullptr) return invalid_value;
  const bool on_host = memory_of(0).kind_of(target, bytes) == CudaPointer::pinned;
  if (!on_host && !fits(CudaPointer::device, target, bytes, "a fill")) return invalid_value;
  issue(*own, "a fill of " + std::to_string(bytes) + " bytes",
        {{bytes_of(target), bytes, Touch::writes}}, [=] { std::memset(target, value, bytes); });
  return CudaStatus::success;
}

CudaStatus FakeCuda::take_last_error() {
  const std::lock_guard lock(mutex_);
  const auto last = last_errors_.extract(std::this_thread::get_id());
  return last.empty() ? CudaStatus::success : last.mapped();
}

std::string_view FakeCuda::error_name(CudaStatus status) {
  if (status == CudaStatus::memory_allocation) return "cudaErrorMemoryAllocation";
  return status == launch_failure ? "cudaErrorLaunchFailure" : "cudaErrorOfTheFake";
}
std::string_view FakeCuda::error_text(CudaStatus status) {
  if (status == CudaStatus::memory_allocation) return "out of memory";
  return status == launch_failure ? "unspecified launch failure" : "the fake refuses the call";
}

void FakeCuda::push_range(const char* name) {
  const std::lock_guard lock(mutex_);
  ranges_.emplace_back(name);
  ++open_ranges_[std::this_thread::get_id()];
}
void FakeCuda::pop_range() {
  const std::lock_guard lock(mutex_);
  --open_ranges_[std::this_thread::get_id()];
}

FakeMemory& FakeCuda::memory_of(int device) {
  return memory_.try_emplace(device, options_.host_touch).first->second;
}

// Work runs under the lock: one at a time.
void FakeCuda::issue(Stream& stream, const std::string& what,
                     const std::vector<FakeAccess>& accesses, std::function<void()> work) {
  timeline_.issue(stream, what, accesses, with_open(accesses, std::move(work)));
}

// Work runs under the lock, one at a time.
std::function<void()> FakeCuda::with_open(const std::vector<FakeAccess>& accesses,
                                          std::function<void()> work) {
  if (options_.host_touch == HostTouch::allowed) return work;
  return [this, accesses, work = std::move(work)] {
    for (auto& [device, memory] : memory_)
      for (const FakeAccess& access : accesses) memory.open(access.begin, access.bytes);
    work();
    for (auto& [device, memory] : memory_)
      for (const FakeAccess& access : accesses) memory.close(access.begin, access.bytes);
  };
}

// Kernels also reach pinned memory, slowly.
void FakeCuda::fits_kernel(const FakeAccess& access, const std::string& what) {
  if (memory_of(0).kind_of(access.begin, access.bytes) != CudaPointer::pinned)
    fits(CudaPointer::device, access.begin, access.bytes, what);
}

bool FakeCuda::fails() {
  timeline_.progress_by_chance();
  return num_calls_++ == options_.failing_call;
}

int FakeCuda::current_device() const {
  const auto found = devices_of_threads_.find(std::this_thread::get_id());
  return found == devices_of_threads_.end() ? 0 : found->second;
}

// Real CUDA would open the first device for it, in passing.
void FakeCuda::check_thread_has_device(int device) {
  if (device != 0 && !devices_of_threads_.contains(std::this_thread::get_id()))
    complaints_.add("a thread that was given no device calls for device " + std::to_string(device));
}

FakeCuda::Stream* FakeCuda::find(CudaStreamHandle stream) {
  const auto found = streams_.find(stream);
  if (found != streams_.end()) return found->second.get();
  complaints_.add("a stream is used that is none");
  return nullptr;
}

std::shared_ptr<FakeCuda::Event> FakeCuda::find_event(CudaEventHandle event) {
  const auto found = events_.find(event);
  if (found != events_.end()) {
    check_thread_has_device(FakeTimeline::device_of(*found->second));
    return found->second;
  }
  complaints_.add("an event is used that is none");
  return nullptr;
}

CudaStatus FakeCuda::complain(const std::string& text) {
  complaints_.add(text);
  return invalid_value;
}

CudaStatus FakeCuda::refuse_memory() {
  last_errors_[std::this_thread::get_id()] = CudaStatus::memory_allocation;
  return CudaStatus::memory_allocation;
}

void FakeCuda::check_wait(bool is_over) {
  const auto found = threads_that_must_not_wait_.find(std::this_thread::get_id());
  if (!is_over && found != threads_that_must_not_wait_.end())
    complaints_.add("the thread " + found->second + " waits for the device");
}

bool FakeCuda::fits(CudaPointer wanted, const void* data, std::uint64_t bytes,
                    const std::string& what) {
  for (const auto& [device, memory] : memory_)
    if (memory.kind_of(data, bytes) == wanted) return true;
  complaints_.add(what +
                  (wanted == CudaPointer::pinned ? " wants host memory that is registered"
                                                 : " wants memory of the device") +
                  ", and gets other");
  return false;
}

}  // namespace strata::testing
