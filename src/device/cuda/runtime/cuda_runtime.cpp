// The CUDA runtime behind CudaApi. Nothing here decides anything: one call each.

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "device/cuda/cuda_device.hpp"

namespace strata {
namespace {

CudaStatus status_of(cudaError_t error) { return static_cast<CudaStatus>(error); }
cudaError_t error_of(CudaStatus status) { return static_cast<cudaError_t>(status); }
cudaStream_t stream_of(CudaStreamHandle stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(CudaEventHandle event) { return static_cast<cudaEvent_t>(event); }

cudaMemcpyKind kind_of(CudaCopy kind) {
  switch (kind) {
    case CudaCopy::host_to_device:
      return cudaMemcpyHostToDevice;
    case CudaCopy::device_to_host:
      return cudaMemcpyDeviceToHost;
    case CudaCopy::device_to_device:
      break;
  }
  return cudaMemcpyDeviceToDevice;
}

int attribute(int ordinal, cudaDeviceAttr which, int otherwise) {
  int value = otherwise;
  if (cudaDeviceGetAttribute(&value, which, ordinal) == cudaSuccess) return value;
  cudaGetLastError();
  return otherwise;
}

CudaPointer kind_of(cudaMemoryType type) {
  if (type == cudaMemoryTypeUnregistered) return CudaPointer::unregistered;
  return type == cudaMemoryTypeHost ? CudaPointer::pinned : CudaPointer::device;
}

// "0000:41:00.0", in lower case as the kernel has it.
std::string pci_address_of(int ordinal) {
  std::array<char, 32> text{};
  if (cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), ordinal) != cudaSuccess) {
    cudaGetLastError();
    return "";
  }
  std::string address(text.data());
  std::ranges::transform(address, address.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return address;
}

class CudaRuntime final : public CudaApi {
 public:
  CudaStatus device_count(int& count) override { return status_of(cudaGetDeviceCount(&count)); }
  CudaStatus versions(CudaVersions& versions) override {
    const cudaError_t driver = cudaDriverGetVersion(&versions.driver);
    if (driver != cudaSuccess) return status_of(driver);
    return status_of(cudaRuntimeGetVersion(&versions.runtime));
  }
  CudaStatus device_facts(int ordinal, CudaDeviceFacts& facts) override {
    cudaDeviceProp properties{};
    const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal);
    if (error != cudaSuccess) return status_of(error);
    facts.name = properties.name;
    facts.pci_address = pci_address_of(ordinal);
    facts.compute_major = properties.major;
    facts.compute_minor = properties.minor;
    facts.num_multiprocessors = properties.multiProcessorCount;
    facts.num_copy_engines = properties.asyncEngineCount;
    facts.memory_bytes = properties.totalGlobalMem;
    facts.numa_node = attribute(ordinal, cudaDevAttrHostNumaId, -1);
    return CudaStatus::success;
  }
  CudaStatus set_device(int ordinal) override { return status_of(cudaSetDevice(ordinal)); }
  CudaStatus synchronize() override { return status_of(cudaDeviceSynchronize()); }
  CudaStatus memory_info(std::uint64_t& free_bytes, std::uint64_t& total_bytes) override {
    std::size_t free = 0, total = 0;
    const cudaError_t error = cudaMemGetInfo(&free, &total);
    free_bytes = free, total_bytes = total;
    return status_of(error);
  }
  CudaStatus can_access_peer(int ordinal, int peer, bool& can) override {
    int value = 0;
    const cudaError_t error = cudaDeviceCanAccessPeer(&value, ordinal, peer);
    can = value != 0;
    return status_of(error);
  }
  CudaStatus has_native_atomics(int ordinal, int peer, bool& has) override {
    int value = 0;
    const cudaError_t error =
        cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrNativeAtomicSupported, ordinal, peer);
    has = value != 0;
    return status_of(error);
  }
  CudaStatus enable_peer_access(int peer) override {
    return status_of(cudaDeviceEnablePeerAccess(peer, 0));
  }

  CudaStatus stream_create(CudaStreamHandle& stream) override {
    cudaStream_t made = nullptr;
    const cudaError_t error = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    stream = made;
    return status_of(error);
  }
  CudaStatus stream_destroy(CudaStreamHandle stream) override {
    return status_of(cudaStreamDestroy(stream_of(stream)));
  }
  CudaStatus stream_synchronize(CudaStreamHandle stream) override {
    return status_of(cudaStreamSynchronize(stream_of(stream)));
  }
  CudaStatus stream_wait_event(CudaStreamHandle stream, CudaEventHandle event) override {
    return status_of(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0));
  }
  CudaStatus event_create(CudaEventHandle& event) override {
    cudaEvent_t made = nullptr;
    const cudaError_t error = cudaEventCreateWithFlags(&made, cudaEventBlockingSync);
    event = made;
    return status_of(error);
  }
  CudaStatus event_destroy(CudaEventHandle event) override {
    return status_of(cudaEventDestroy(event_of(event)));
  }
  CudaStatus event_record(CudaEventHandle event, CudaStreamHandle stream) override {
    return status_of(cudaEventRecord(event_of(event), stream_of(stream)));
  }
  CudaStatus event_synchronize(CudaEventHandle event) override {
    return status_of(cudaEventSynchronize(event_of(event)));
  }
  CudaStatus event_query(CudaEventHandle event, bool& is_reached) override {
    const cudaError_t error = cudaEventQuery(event_of(event));
    is_reached = error == cudaSuccess;
    if (error != cudaErrorNotReady) return status_of(error);
    cudaGetLastError();  // It counts as one.
    return CudaStatus::success;
  }
  CudaStatus elapsed_ms(float& ms, CudaEventHandle begin, CudaEventHandle end) override {
    return status_of(cudaEventElapsedTime(&ms, event_of(begin), event_of(end)));
  }

  CudaStatus allocate(void*& data, std::uint64_t bytes) override {
    return status_of(cudaMalloc(&data, bytes));
  }
  CudaStatus release(void* data) override { return status_of(cudaFree(data)); }
  CudaStatus register_host(void* data, std::uint64_t bytes) override {
    return status_of(
        cudaHostRegister(data, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped));
  }
  CudaStatus unregister_host(void* data) override { return status_of(cudaHostUnregister(data)); }
  CudaStatus pointer_kind(const void* data, CudaPointer& kind) override {
    cudaPointerAttributes attributes{};
    const cudaError_t error = cudaPointerGetAttributes(&attributes, data);
    kind = kind_of(attributes.type);
    return status_of(error);
  }
  CudaStatus copy(void* target, const void* source, std::uint64_t bytes, CudaCopy kind,
                  CudaStreamHandle stream) override {
    return status_of(cudaMemcpyAsync(target, source, bytes, kind_of(kind), stream_of(stream)));
  }
  CudaStatus fill(void* target, std::uint8_t value, std::uint64_t bytes,
                  CudaStreamHandle stream) override {
    return status_of(cudaMemsetAsync(target, value, bytes, stream_of(stream)));
  }

  CudaStatus take_last_error() override { return status_of(cudaGetLastError()); }
  std::string_view error_name(CudaStatus status) override {
    return cudaGetErrorName(error_of(status));
  }
  std::string_view error_text(CudaStatus status) override {
    return cudaGetErrorString(error_of(status));
  }
  void push_range(const char* name) override { nvtxRangePushA(name); }
  void pop_range() override { nvtxRangePop(); }
};

CudaRuntime& runtime() {
  static CudaRuntime instance;
  return instance;
}

}  // namespace

int num_cuda_devices() { return num_cuda_devices(runtime()); }

std::unique_ptr<Device> make_cuda_device(int ordinal, const CudaDeviceOptions& options) {
  return make_cuda_device(runtime(), ordinal, options);
}

CudaInventory read_cuda_devices() { return read_cuda_devices(runtime()); }

}  // namespace strata
