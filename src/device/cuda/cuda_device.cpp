#include "device/cuda/cuda_device.hpp"

#include <fmt/format.h>

#include <cstring>

#include "device/cuda/cuda_check.hpp"
#include "device/cuda/cuda_stream.hpp"
#include "device/cuda/device_clock.hpp"
#include "device/cuda/pinned_memory.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

CudaCopy copy_of(CopyKind kind) {
  switch (kind) {
    case CopyKind::host_to_device:
      return CudaCopy::host_to_device;
    case CopyKind::device_to_host:
      return CudaCopy::device_to_host;
    case CopyKind::device_to_device:
      break;
  }
  return CudaCopy::device_to_device;
}

std::string_view direction(CopyKind kind) {
  if (kind == CopyKind::host_to_device) return "to the device";
  return kind == CopyKind::device_to_host ? "to the host" : "within the device";
}

class CudaDevice final : public Device {
 public:
  CudaDevice(CudaApi& api, const CudaDeviceFacts& facts, const CudaDeviceOptions& options)
      : api_(api), facts_(facts), options_(options) {
    use_on_this_thread();
    for (const int peer : options_.peers) reach(peer);
    clock_ = std::make_unique<DeviceClock>(api_, facts_.ordinal);
    free_bytes_at_start_ = free_bytes();
  }

  DeviceInfo info() const override { return {facts_.name, free_bytes_at_start_, facts_.numa_node}; }
  std::uint64_t free_bytes() override {
    use_on_this_thread();
    std::uint64_t free = 0, total = 0;
    check(api_, api_.memory_info(free, total), "cudaMemGetInfo");
    return free;
  }
  Completion completion() const override { return Completion::on_stream; }
  void use_on_this_thread() override {
    check(api_, api_.set_device(facts_.ordinal),
          [&] { return fmt::format("cudaSetDevice({})", facts_.ordinal); });
  }
  void begin_range(const char* name) override { api_.push_range(name); }
  void end_range() override { api_.pop_range(); }

  std::unique_ptr<Stream> make_stream(std::string_view name) override {
    use_on_this_thread();
    auto stream = std::make_unique<CudaStream>(api_, facts_.ordinal, name);
    if (has_pageable_) stream->staging().prepare();  // Not during a step, nor refused there.
    return stream;
  }
  std::unique_ptr<Event> make_event() override {
    use_on_this_thread();
    return std::make_unique<CudaEvent>(api_, *clock_);
  }

  Slab allocate(std::uint64_t bytes) override {
    if (bytes == 0) return {};
    use_on_this_thread();
    void* data = nullptr;
    const CudaStatus status = api_.allocate(data, bytes);
    if (status == CudaStatus::memory_allocation) refuse(bytes);
    check(api_, status, fmt::format("cudaMalloc of {}", format_bytes(bytes)));
    Slab slab(static_cast<std::byte*>(data), bytes,
              [&api = api_](std::byte* begin, std::uint64_t) { api.release(begin); });
    CudaStreamOwner stream(api_);
    check(api_, api_.fill(data, 0, bytes, stream.get()), "cudaMemsetAsync of new device memory");
    check(api_, api_.stream_synchronize(stream.get()), "cudaStreamSynchronize");
    return slab;
  }

  Slab allocate_pinned(std::uint64_t bytes) override {
    use_on_this_thread();
    PinnedMemoryOptions pinned{.place = options_.place_pinned};
    if (options_.on_pageable)
      pinned.on_pageable = [this](const std::string& why) {
        has_pageable_ = true;
        options_.on_pageable(why);
      };
    return allocate_pinned_memory(api_, facts_.ordinal, bytes, pinned);
  }

  void copy(std::byte* target, const std::byte* source, std::uint64_t bytes, CopyKind kind,
            Stream& stream) override {
    auto& own = static_cast<CudaStream&>(stream);
    if (kind == CopyKind::host_to_device && !is_pinned(source))
      return own.staging().to_device(target, source, bytes, own.native());
    if (kind == CopyKind::device_to_host && !is_pinned(target))
      return own.staging().to_host(target, source, bytes, own.native());
    if (kind == CopyKind::device_to_device) return copy_piece(target, source, bytes, kind, own);
    const std::byte* const host = kind == CopyKind::host_to_device ? source : target;
    for_each_chunk(host, bytes, [&](std::uint64_t begin, std::uint64_t size) {
      copy_piece(target + begin, source + begin, size, kind, own);
    });
  }

  // Memory that is not pinned is the host's to set, when the stream has come to it.
  void fill(std::byte* target, std::uint64_t bytes, std::byte value, Stream& stream) override {
    auto& own = static_cast<CudaStream&>(stream);
    const CudaPointer where = kind_of(target);
    if (where == CudaPointer::device) return fill_piece(target, bytes, value, own);
    if (where == CudaPointer::unregistered) {
      own.synchronize();
      std::memset(target, std::to_integer<int>(value), bytes);
      return;
    }
    for_each_chunk(target, bytes, [&](std::uint64_t begin, std::uint64_t size) {
      fill_piece(target + begin, size, value, own);
    });
  }

 private:
  CudaPointer kind_of(const std::byte* memory) {
    CudaPointer kind = CudaPointer::unregistered;
    check(api_, api_.pointer_kind(memory, kind), "cudaPointerGetAttributes");
    return kind;
  }
  bool is_pinned(const std::byte* memory) { return kind_of(memory) != CudaPointer::unregistered; }

  void copy_piece(std::byte* target, const std::byte* source, std::uint64_t bytes, CopyKind kind,
                  CudaStream& stream) {
    check(api_, api_.copy(target, source, bytes, copy_of(kind), stream.native()), [&] {
      return fmt::format("cudaMemcpyAsync of {} {} on stream {}", format_bytes(bytes),
                         direction(kind), stream.name());
    });
  }

  void fill_piece(std::byte* target, std::uint64_t bytes, std::byte value, CudaStream& stream) {
    const auto byte = std::to_integer<std::uint8_t>(value);
    check(api_, api_.fill(target, byte, bytes, stream.native()), [&] {
      return fmt::format("cudaMemsetAsync of {} on stream {}", format_bytes(bytes), stream.name());
    });
  }

  // A peer that no link reaches is copied to and from all the same, by way of the host.
  void reach(int peer) {
    bool can = false;
    check(api_, api_.can_access_peer(facts_.ordinal, peer, can), "cudaDeviceCanAccessPeer");
    if (!can) return;
    const CudaStatus status = api_.enable_peer_access(peer);
    if (status == CudaStatus::peer_access_already_enabled) {
      api_.take_last_error();
      return;
    }
    check(api_, status, fmt::format("cudaDeviceEnablePeerAccess({})", peer));
  }

  [[noreturn]] void refuse(std::uint64_t bytes) {
    api_.take_last_error();  // Else the next launch would be blamed for it.
    throw OutOfMemory(fmt::format("CUDA device {} ({})", facts_.ordinal, facts_.name), bytes,
                      free_bytes(),
                      "see with nvidia-smi who holds the rest, or lower offload.gpu_limit");
  }

  CudaApi& api_;
  const CudaDeviceFacts facts_;
  const CudaDeviceOptions options_;
  std::unique_ptr<DeviceClock> clock_;
  std::uint64_t free_bytes_at_start_ = 0;
  bool has_pageable_ = false;  // memory that was to be pinned
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(CudaApi& api, int ordinal,
                                         const CudaDeviceOptions& options) {
  const CudaInventory inventory = read_cuda_devices(api);
  if (!inventory.failure.empty())
    throw ConfigError(fmt::format("there is no CUDA device: {}", inventory.failure));
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= inventory.devices.size())
    throw ConfigError(
        fmt::format("there is no CUDA device {}: this machine has {} (CUDA_VISIBLE_DEVICES "
                    "may hide some)",
                    ordinal, inventory.devices.size()));
  return std::make_unique<CudaDevice>(api, inventory.devices[static_cast<std::size_t>(ordinal)],
                                      options);
}

}  // namespace strata
