#pragma once
// Owners of the CUDA runtime's streams and events. What they cannot give back any more (the context
// is broken, or the process ends) is nobody's trouble.

#include "device/cuda/cuda_check.hpp"

namespace strata {

class CudaStreamOwner {
 public:
  explicit CudaStreamOwner(CudaApi& api) : api_(api) {
    check(api, api.stream_create(handle_), "cudaStreamCreateWithFlags");
  }
  CudaStreamOwner(const CudaStreamOwner&) = delete;
  CudaStreamOwner& operator=(const CudaStreamOwner&) = delete;
  ~CudaStreamOwner() { api_.stream_destroy(handle_); }
  CudaStreamHandle get() const { return handle_; }

 private:
  CudaApi& api_;
  CudaStreamHandle handle_ = nullptr;
};

class CudaEventOwner {
 public:
  explicit CudaEventOwner(CudaApi& api) : api_(api) {
    check(api, api.event_create(handle_), "cudaEventCreateWithFlags");
  }
  CudaEventOwner(const CudaEventOwner&) = delete;
  CudaEventOwner& operator=(const CudaEventOwner&) = delete;
  ~CudaEventOwner() { api_.event_destroy(handle_); }
  CudaEventHandle get() const { return handle_; }

 private:
  CudaApi& api_;
  CudaEventHandle handle_ = nullptr;
};

}  // namespace strata
