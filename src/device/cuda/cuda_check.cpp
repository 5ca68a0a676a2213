#include "device/cuda/cuda_check.hpp"

#include <fmt/format.h>

#include "strata/device/cuda_advice.hpp"

namespace strata {

std::string cuda_failure(CudaApi& api, CudaStatus status, std::string_view call,
                         std::string_view advice) {
  return fmt::format("{}: {} ({}): {}{}", call, api.error_name(status), static_cast<int>(status),
                     api.error_text(status), advice);
}

std::string cuda_failure(CudaApi& api, CudaStatus status, std::string_view call) {
  return cuda_failure(api, status, call, cuda_advice(static_cast<int>(status)));
}

void throw_cuda_failure(CudaApi& api, CudaStatus status, std::string_view call) {
  api.take_last_error();  // Else the next launch of this thread would be blamed for it.
  throw CudaError(cuda_failure(api, status, call), status);
}

}  // namespace strata
