#pragma once
// The CUDA runtime as device/cuda uses it, on the host: the same calls, work that runs later than
// it is issued, in an order of a seed's choice, and complaints about whatever real hardware would
// not forgive: waits that are missing, host memory that is used before a copy is done with it or
// that is not registered as one, copies of a wrong kind, errors that nobody takes before a launch
// is blamed for them, threads that wait and must not or that have no device, things given back
// twice or never. See fake_timeline.hpp.
//
// Thread contract: any thread.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fake_cuda/fake_memory.hpp"
#include "fake_cuda/fake_timeline.hpp"

namespace strata::testing {

struct FakeCudaOptions {
  std::uint64_t seed = 1;
  int num_devices = 2;
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  // faults: pages of device memory are within reach of the work of a stream that says it touches
  // them, and of nobody else.
  HostTouch host_touch = HostTouch::allowed;
  // The call of this number (from 0) fails with an error and does nothing but give back.
  std::optional<std::uint64_t> failing_call = {};
  // The wait of this number (from 0) of a stream for an event is not made.
  std::optional<std::uint64_t> dropped_wait = {};
  // The wait of this number (from 0) of the host for an event returns at once.
  std::optional<std::uint64_t> dropped_host_wait = {};
};

class FakeCuda final : public CudaApi {
 public:
  explicit FakeCuda(const FakeCudaOptions& options);
  ~FakeCuda() override;

  // Work as of a kernel.
  void launch(CudaStreamHandle stream, const std::string& what,
              const std::vector<FakeAccess>& accesses, std::function<void()> work);
  // Work as of a library that joins streams of several threads: it begins when the stream has come
  // to it and may_begin(), and ends when may_end(). Who waits for it lets other threads go on.
  struct JointWork {
    std::function<bool()> may_begin;
    std::function<void()> begin;
    std::function<bool()> may_end;
    std::function<void()> end;
  };
  void launch_joint(CudaStreamHandle stream, const std::string& what,
                    const std::vector<FakeAccess>& accesses, const JointWork& work);
  void host_touches(const FakeAccess& access, const std::string& what);
  // From now on this host memory cannot be registered, nor a range with a part of it.
  void refuse_pinning(std::span<const std::byte> memory);
  // The calling thread must not wait for the device.
  void forbid_waiting(const std::string& thread_name);

  std::vector<std::string> complaints() const { return complaints_.texts(); }
  std::size_t num_complaints() const { return complaints_.count(); }
  std::vector<std::string> leaks() const;  // what was made and not given back
  std::uint64_t num_launches() const;
  std::uint64_t num_calls() const;
  std::uint64_t num_waits() const;
  std::uint64_t num_host_waits() const;  // for events
  bool dropped_wait_mattered() const;
  // Bytes of each registration of host memory, by address.
  std::vector<std::uint64_t> registrations() const {
    const std::lock_guard lock(mutex_);
    const auto found = memory_.find(0);
    return found == memory_.end() ? std::vector<std::uint64_t>() : found->second.registrations();
  }
  std::vector<std::string> ranges() const;  // names of those pushed

  CudaStatus device_count(int& count) override;
  CudaStatus versions(CudaVersions& versions) override;
  CudaStatus device_facts(int ordinal, CudaDeviceFacts& facts) override;
  CudaStatus set_device(int ordinal) override;
  CudaStatus synchronize() override;
  CudaStatus memory_info(std::uint64_t& free_bytes, std::uint64_t& total_bytes) override;
  CudaStatus can_access_peer(int ordinal, int peer, bool& can) override;
  CudaStatus has_native_atomics(int ordinal, int peer, bool& has) override;
  CudaStatus enable_peer_access(int peer) override;
  CudaStatus stream_create(CudaStreamHandle& stream) override;
  CudaStatus stream_destroy(CudaStreamHandle stream) override;
  CudaStatus stream_synchronize(CudaStreamHandle stream) override;
  CudaStatus stream_wait_event(CudaStreamHandle stream, CudaEventHandle event) override;
  CudaStatus event_create(CudaEventHandle& event) override;
  CudaStatus event_destroy(CudaEventHandle event) override;
  CudaStatus event_record(CudaEventHandle event, CudaStreamHandle stream) override;
  CudaStatus event_synchronize(CudaEventHandle event) override;
  CudaStatus event_query(CudaEventHandle event, bool& is_reached) override;
  CudaStatus elapsed_ms(float& ms, CudaEventHandle begin, CudaEventHandle end) override;
  CudaStatus allocate(void*& data, std::uint64_t bytes) override;
  CudaStatus release(void* data) override;
  CudaStatus register_host(void* data, std::uint64_t bytes) override;
  CudaStatus unregister_host(void* data) override;
  CudaStatus pointer_kind(const void* data, CudaPointer& kind) override;
  CudaStatus copy(void* target, const void* source, std::uint64_t bytes, CudaCopy kind,
                  CudaStreamHandle stream) override;
  CudaStatus fill(void* target, std::uint8_t value, std::uint64_t bytes,
                  CudaStreamHandle stream) override;
  CudaStatus take_last_error() override;
  std::string_view error_name(CudaStatus status) override;
  std::string_view error_text(CudaStatus status) override;
  void push_range(const char* name) override;
  void pop_range() override;

 private:
  using Stream = FakeTimeline::Stream;
  using Event = FakeTimeline::Event;

  using Lock = std::unique_lock<std::mutex>;
  template <typename Run>
  bool run(Lock& lock, const Run& run);
  void run_device(Lock& lock, int device);
  FakeMemory& memory_of(int device);
  void issue(Stream& stream, const std::string& what, const std::vector<FakeAccess>& accesses,
             std::function<void()> work);
  std::function<void()> with_open(const std::vector<FakeAccess>& accesses,
                                  std::function<void()> work);
  void fits_kernel(const FakeAccess& access, const std::string& what);
  bool fails();  // counts a call, and lets others go on now and then
  int current_device() const;
  void check_thread_has_device(int device);
  Stream* find(CudaStreamHandle stream);
  std::shared_ptr<Event> find_event(CudaEventHandle event);
  CudaStatus complain(const std::string& text);
  CudaStatus refuse_memory();
  void check_wait(bool is_over);
  bool fits(CudaPointer wanted, const void* data, std::uint64_t bytes, const std::string& what);

  const FakeCudaOptions options_;
  FakeComplaints complaints_;
  mutable std::mutex mutex_;
  std::condition_variable issued_;
  // Guarded by mutex_.
  FakeTimeline timeline_;
  std::map<int, FakeMemory> memory_;  // by device; registrations are the first's
  std::map<void*, std::shared_ptr<Stream>> streams_;
  std::map<void*, std::shared_ptr<Event>> events_;
  std::map<std::thread::id, int> devices_of_threads_;
  std::map<std::thread::id, std::string> threads_that_must_not_wait_;
  std::map<std::thread::id, CudaStatus> last_errors_;
  std::vector<std::span<const std::byte>> unpinnable_;
  std::uint64_t num_launches_ = 0, num_calls_ = 0, num_waits_ = 0, num_host_waits_ = 0;
  std::vector<std::string> ranges_;
  std::map<std::thread::id, int> open_ranges_;
};

}  // namespace strata::testing
