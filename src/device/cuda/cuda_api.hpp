#pragma once
// The calls to the CUDA runtime that device/cuda makes, so that a recording fake can stand in for
// it. Handles are the runtime's pointers with their types taken off; a status is its error number.
// All but the names of errors may return one, none throws. Thread contract: as the CUDA runtime's.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strata/device/cuda_devices.hpp"

namespace strata {

using CudaStreamHandle = void*;
using CudaEventHandle = void*;

// Those that the code decides on; others are passed on as they are.
enum class CudaStatus : int {
  success = 0,
  invalid_value = 1,
  memory_allocation = 2,
  no_device = 100,
  insufficient_driver = 35,
  operating_system = 304,
  peer_access_already_enabled = 704,
  not_permitted = 800,
  not_supported = 801,
};

enum class CudaCopy : std::uint8_t { host_to_device, device_to_host, device_to_device };
enum class CudaPointer : std::uint8_t { unregistered, pinned, device };

struct CudaVersions {
  int driver = 0, runtime = 0;  // 13000 is 13.0; 0: no driver
};

class CudaApi {
 public:
  virtual ~CudaApi() = default;

  // --- Devices.
  virtual CudaStatus device_count(int& count) = 0;
  virtual CudaStatus versions(CudaVersions& versions) = 0;
  // All but its peers.
  virtual CudaStatus device_facts(int ordinal, CudaDeviceFacts& facts) = 0;
  virtual CudaStatus set_device(int ordinal) = 0;  // of the calling thread, as all below
  virtual CudaStatus synchronize() = 0;            // all its streams
  virtual CudaStatus memory_info(std::uint64_t& free_bytes, std::uint64_t& total_bytes) = 0;
  virtual CudaStatus can_access_peer(int ordinal, int peer, bool& can) = 0;
  virtual CudaStatus has_native_atomics(int ordinal, int peer, bool& has) = 0;
  virtual CudaStatus enable_peer_access(int peer) = 0;

  // --- Streams and events. Streams do not wait for the default stream; who waits for an event
  // sleeps.
  virtual CudaStatus stream_create(CudaStreamHandle& stream) = 0;
  virtual CudaStatus stream_destroy(CudaStreamHandle stream) = 0;
  virtual CudaStatus stream_synchronize(CudaStreamHandle stream) = 0;
  virtual CudaStatus stream_wait_event(CudaStreamHandle stream, CudaEventHandle event) = 0;
  virtual CudaStatus event_create(CudaEventHandle& event) = 0;
  virtual CudaStatus event_destroy(CudaEventHandle event) = 0;
  virtual CudaStatus event_record(CudaEventHandle event, CudaStreamHandle stream) = 0;
  virtual CudaStatus event_synchronize(CudaEventHandle event) = 0;
  virtual CudaStatus event_query(CudaEventHandle event, bool& is_reached) = 0;
  virtual CudaStatus elapsed_ms(float& ms, CudaEventHandle begin, CudaEventHandle end) = 0;

  // --- Memory.
  virtual CudaStatus allocate(void*& data, std::uint64_t bytes) = 0;
  virtual CudaStatus release(void* data) = 0;
  virtual CudaStatus register_host(void* data, std::uint64_t bytes) = 0;  // for all devices
  virtual CudaStatus unregister_host(void* data) = 0;
  virtual CudaStatus pointer_kind(const void* data, CudaPointer& kind) = 0;
  virtual CudaStatus copy(void* target, const void* source, std::uint64_t bytes, CudaCopy kind,
                          CudaStreamHandle stream) = 0;
  virtual CudaStatus fill(void* target, std::uint8_t value, std::uint64_t bytes,
                          CudaStreamHandle stream) = 0;

  // --- Errors and profilers.
  // The last error of a call of this thread, which is thereby forgotten, unless it broke the
  // context. Kernel launches tell theirs here alone.
  virtual CudaStatus take_last_error() = 0;
  virtual std::string_view error_name(CudaStatus status) = 0;  // "cudaErrorIllegalAddress"
  virtual std::string_view error_text(CudaStatus status) = 0;
  virtual void push_range(const char* name) = 0;
  virtual void pop_range() = 0;
};

}  // namespace strata
