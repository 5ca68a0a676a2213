#pragma once
// Failures of the CUDA runtime as errors: the call, the error's name and text, the device, and what
// was being done.

#include <concepts>
#include <string>
#include <string_view>

#include "device/cuda/cuda_api.hpp"
#include "strata/core/error.hpp"

namespace strata {

// A call to the CUDA runtime failed. what() is one complete message.
class CudaError : public Error {
 public:
  CudaError(const std::string& message, CudaStatus status) : Error(message), status_(status) {}
  CudaStatus status() const { return status_; }

 private:
  CudaStatus status_;
};

// "cudaMemcpyAsync of 16 MiB to the device: cudaErrorIllegalAddress (700): an illegal memory access
// was encountered", with what to do where we know it, or with the caller's advice ("; ...").
std::string cuda_failure(CudaApi& api, CudaStatus status, std::string_view call);
std::string cuda_failure(CudaApi& api, CudaStatus status, std::string_view call,
                         std::string_view advice);

// Throws CudaError, and has the runtime forget the error.
[[noreturn]] void throw_cuda_failure(CudaApi& api, CudaStatus status, std::string_view call);

// Throws CudaError unless the status is success.
// check(api, api.stream_create(stream), "cudaStreamCreateWithFlags");
inline void check(CudaApi& api, CudaStatus status, std::string_view call) {
  if (status != CudaStatus::success) throw_cuda_failure(api, status, call);
}

// The same, where the call has to be described: nothing is allocated while all goes well.
template <std::invocable Describe>
void check(CudaApi& api, CudaStatus status, const Describe& describe) {
  if (status != CudaStatus::success) throw_cuda_failure(api, status, describe());
}

}  // namespace strata
