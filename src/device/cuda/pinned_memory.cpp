#include "device/cuda/pinned_memory.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <memory>

#include "device/cuda/cuda_check.hpp"
#include "device/host_memory.hpp"

namespace strata {
namespace {

void unregister_chunks(CudaApi& api, std::span<std::byte> memory) {
  for_each_chunk(memory.data(), memory.size(), [&](std::uint64_t begin, std::uint64_t) {
    if (api.unregister_host(memory.data() + begin) != CudaStatus::success) api.take_last_error();
  });
}

struct Registering {
  CudaStatus status = CudaStatus::success;
  std::uint64_t done_bytes = 0, chunk_bytes = 0;  // of the last one, which was refused or not
};

// All of it, or as far as it went.
Registering register_chunks(CudaApi& api, std::span<std::byte> memory) {
  Registering at;
  for_each_chunk(memory.data(), memory.size(), [&](std::uint64_t begin, std::uint64_t size) {
    if (at.status != CudaStatus::success) return;
    at.status = api.register_host(memory.data() + begin, size);
    at.chunk_bytes = size;
    if (at.status == CudaStatus::success) at.done_bytes += size;
  });
  return at;
}

// By the system or the driver, for this memory: others are of something that went wrong before.
bool is_refusal(CudaStatus status) {
  switch (status) {
    case CudaStatus::invalid_value:
    case CudaStatus::memory_allocation:
    case CudaStatus::operating_system:
    case CudaStatus::not_permitted:
    case CudaStatus::not_supported:
      return true;
    default:
      return false;
  }
}

std::string lock_limit() {
  rlimit limit = {};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : format_bytes(limit.rlim_cur);
}

// The runtime calls it "out of memory"; the device's is not meant.
std::string advice() {
  return fmt::format(
      "; it is the host's memory that cannot be locked, not the GPU's that is full: lower "
      "offload.cpu_limit, raise what may be locked (ulimit -l, here {}) or the container's limits "
      "(Docker: --memory, --ulimit memlock=-1); NVRM lines in dmesg may tell more",
      lock_limit());
}

std::string describe(const Registering& at, std::uint64_t bytes) {
  if (at.chunk_bytes == bytes)
    return fmt::format("cudaHostRegister of {} of host memory", format_bytes(bytes));
  return fmt::format("cudaHostRegister of {} of host memory, with {} of {} registered",
                     format_bytes(at.chunk_bytes), format_bytes(at.done_bytes),
                     format_bytes(bytes));
}

// Of what was refused: that the memory stays pageable, or that it may not.
void tell_or_throw(CudaApi& api, const Registering& at, std::uint64_t bytes,
                   const PinnedMemoryOptions& options) {
  const std::string call = describe(at, bytes);
  if (!is_refusal(at.status)) throw_cuda_failure(api, at.status, call);
  api.take_last_error();  // Else the next launch would be blamed for it.
  const std::string why = cuda_failure(api, at.status, call, advice());
  if (!options.on_pageable) throw CudaError(why, at.status);
  options.on_pageable(why);
}

}  // namespace

Slab allocate_pinned_memory(CudaApi& api, int ordinal, std::uint64_t bytes,
                            const PinnedMemoryOptions& options) {
  if (bytes == 0) return {};
  auto mapped = std::make_shared<Slab>(map_host_memory(bytes, "pinned host memory"));
  const std::span<std::byte> memory(mapped->data(), mapped->bytes());
  if (options.place) options.place(memory);
  const Registering at = register_chunks(api, memory);
  if (at.status == CudaStatus::success)
    return {memory.data(), memory.size(), [mapped, &api, ordinal](std::byte*, std::uint64_t) {
              api.set_device(ordinal);
              api.synchronize();
              unregister_chunks(api, {mapped->data(), mapped->bytes()});
            }};
  unregister_chunks(api, memory.first(at.done_bytes));
  tell_or_throw(api, at, memory.size(), options);
  return {memory.data(), memory.size(), [mapped](std::byte*, std::uint64_t) {}};
}

}  // namespace strata
