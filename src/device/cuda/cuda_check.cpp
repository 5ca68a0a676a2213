#include "device/cuda/cuda_check.hpp"

#include <fmt/format.h>

namespace strata {
namespace {

// The runtime reports what a kernel or an earlier copy did wrong at whatever call comes next.
bool is_late(CudaStatus status) {
  const int code = static_cast<int>(status);
  return code == 700 || (code >= 714 && code <= 719);
}

std::string_view advice_for(CudaStatus status) {
  if (is_late(status))
    return "; the work at fault was given to the device earlier: with CUDA_LAUNCH_BLOCKING=1 the "
           "call that fails is its own, and compute-sanitizer shows the place";
  switch (static_cast<int>(status)) {
    case 2:
      return "; see with nvidia-smi who holds the device's memory, or lower offload.gpu_limit";
    case 35:
      return "; the NVIDIA driver is missing or older than this build's CUDA";
    case 209:
      return "; this build has no code for the device's architecture";
    case 214:
      return "; the device's memory has failed: see nvidia-smi -q -d ECC";
    default:
      return "";
  }
}

}  // namespace

std::string cuda_failure(CudaApi& api, CudaStatus status, std::string_view call) {
  return fmt::format("{}: {} ({}): {}{}", call, api.error_name(status), static_cast<int>(status),
                     api.error_text(status), advice_for(status));
}

}  // namespace strata
