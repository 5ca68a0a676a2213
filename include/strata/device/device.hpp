#pragma once
// A Device is one accelerator, or the host standing in for one. It makes streams, events and slabs
// and copies bytes asynchronously. CUDA headers appear in no header: the back end is a source file
// chosen by CMake.
//
// Thread contract: allocate and make_* from one thread at a time; a Stream is used by one thread at
// a time (its lane); an Event is recorded by one thread and waited for by any.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata {

// A slab is one exact-size allocation, zero-initialised, on 2 MiB pages where the system grants
// them. Freed by its destructor. Movable.
class Slab {
 public:
  // Gives the memory back. Must not throw.
  using Release = std::function<void(std::byte*, std::uint64_t)>;

  Slab() = default;
  Slab(std::byte* data, std::uint64_t bytes, Release release)
      : data_(data), bytes_(bytes), release_(std::move(release)) {}
  Slab(Slab&& other) noexcept { swap(other); }
  Slab& operator=(Slab&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Slab() {
    if (release_) release_(data_, bytes_);
  }

  std::byte* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void swap(Slab& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
  }
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
  Release release_;
};

enum class CopyKind : std::uint8_t { host_to_device, device_to_host, device_to_device };

// When work that was given to a stream is complete.
enum class Completion : std::uint8_t {
  on_return,  // when the call returns: it ran on the calling thread
  on_stream,  // later, in the stream's order
};

// A point on a stream, the one of its last record(). On the host device it is complete once
// recorded.
class Event {
 public:
  virtual ~Event() = default;
  virtual void synchronize() = 0;  // Blocks the calling thread until the point is reached. Throws
                                   // if the work failed.
  virtual bool is_reached() = 0;   // Without waiting. Throws as synchronize() does.
  // When the point was reached, on the clock of now_ns(). Asked after synchronize().
  virtual std::int64_t time_ns() = 0;
};

// An in-order queue of device work. On the host device, work runs on the calling thread and is
// complete on return.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void record(Event& event) = 0;
  // Later work on this stream starts after the point where `event` was recorded last. The calling
  // thread goes on at once.
  virtual void wait(Event& event) = 0;
  virtual void synchronize() = 0;
  // What the back end's kernels are launched on (a cudaStream_t); null on the host device.
  virtual void* native() const { return nullptr; }
};

struct DeviceInfo {
  std::string name;                // "host", "NVIDIA H100 80GB HBM3"
  std::uint64_t memory_bytes = 0;  // what allocate() could give in all when the device was made
  int numa_node = -1;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceInfo info() const = 0;
  // What allocate() could give now, where that can be told: others may use the device too.
  virtual std::uint64_t free_bytes() { return info().memory_bytes; }
  virtual Completion completion() const { return Completion::on_return; }
  // The calling thread is about to give work to this device's streams, until it says so to another.
  virtual void use_on_this_thread() {}
  // For a profiler: what the calling thread issues until end_range() belongs to `name`.
  virtual void begin_range(const char* /*name*/) {}
  virtual void end_range() {}
  virtual std::unique_ptr<Stream> make_stream(std::string_view name) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  virtual Slab allocate(std::uint64_t bytes) = 0;  // Device memory. Throws OutOfMemory.
  virtual Slab allocate_pinned(
      std::uint64_t bytes) = 0;  // Host memory the device copies from at full speed.
  // Both ends stay as they are until it is complete. Host memory that is not pinned is copied
  // through a buffer of the device's: slowly from the device, whose work it then waits for.
  virtual void copy(std::byte* target, const std::byte* source, std::uint64_t bytes, CopyKind kind,
                    Stream& stream) = 0;
  // Sets bytes of device or pinned memory.
  virtual void fill(std::byte* target, std::uint64_t bytes, std::byte value, Stream& stream) = 0;
  void zero(std::byte* target, std::uint64_t bytes, Stream& stream) {
    fill(target, bytes, std::byte{0}, stream);
  }
};

// The host standing in for an accelerator: "device" memory is RAM of a bounded size and links can
// be slowed.
struct HostDeviceOptions {
  std::uint64_t memory_bytes = ~std::uint64_t{0};
  double host_to_device_bytes_per_s = 0;  // 0: as fast as memcpy
  double device_to_host_bytes_per_s = 0;
};
std::unique_ptr<Device> make_host_device(const HostDeviceOptions& options);

// A device without bytes: its memory has addresses that nothing may touch, copies and streams do
// nothing. Work that runs over it with make_meta_kernels() is recorded, not done. Throws
// OutOfMemory when the process may reserve no more addresses.
std::unique_ptr<Device> make_meta_device();

// CUDA devices of this machine; 0 in a build without CUDA or on a machine without a driver. What
// else is known of them: cuda_devices.hpp.
int num_cuda_devices();

struct CudaDeviceOptions {
  std::vector<int> peers = {};  // whose memory this one may reach, where the link between allows it
  // Called on pinned memory before anybody has touched it: the place to put it near the device.
  // Must not throw.
  std::function<void(std::span<std::byte>)> place_pinned = {};
};
std::unique_ptr<Device> make_cuda_device(
    int ordinal, const CudaDeviceOptions& options = {});  // Throws ConfigError when there is none.

}  // namespace strata
