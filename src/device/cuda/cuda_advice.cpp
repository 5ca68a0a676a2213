#include "strata/device/cuda_advice.hpp"

#include <algorithm>
#include <array>

namespace strata {
namespace {

struct Advice {
  int error_number;
  std::string_view text;
};

constexpr std::array advices{
    Advice{2, "; see with nvidia-smi who holds the device's memory, or lower offload.gpu_limit"},
    Advice{3, "; the driver's modules may not be loaded: nvidia-smi tells, and so does dmesg"},
    Advice{35, "; the NVIDIA driver is missing or older than this build's CUDA"},
    Advice{36, "; the NVIDIA driver is older than this build's CUDA"},
    Advice{46,
           "; another process may have the device for itself: see nvidia-smi, and nvidia-smi -q -d "
           "COMPUTE for its compute mode"},
    Advice{100,
           "; CUDA_VISIBLE_DEVICES may hide the devices, and a container has them only when it is "
           "started with them (Docker: --gpus all)"},
    Advice{209, "; this build has no code for the device's architecture"},
    Advice{214, "; the device's memory has failed: see nvidia-smi -q -d ECC"},
    Advice{220, "; a link between GPUs has failed: see nvidia-smi nvlink -e, and Xid in dmesg"},
    Advice{222, "; the NVIDIA driver is older than this build's CUDA"},
    Advice{702, "; a GPU that drives a display ends work that takes long: use another"},
    Advice{802,
           "; GPUs behind NVSwitch need the Fabric Manager: systemctl status nvidia-fabricmanager"},
    Advice{803,
           "; the driver's library and its kernel module are of different versions: restart the "
           "machine after an update of the driver; in a container, start it anew"},
    Advice{804,
           "; a compatibility library of CUDA is in the way, which this GPU cannot use: take its "
           "folder (compat) out of LD_LIBRARY_PATH"},
    Advice{999, "; the driver's modules may be in a bad state: see nvidia-smi, and Xid in dmesg"},
};

}  // namespace

bool is_late_cuda_error(int error_number) {
  return error_number == 700 || error_number == 702 || error_number == 710 ||
         (error_number >= 714 && error_number <= 719) || error_number == 721;
}

std::string_view cuda_advice(int error_number) {
  const auto found = std::ranges::find(advices, error_number, &Advice::error_number);
  if (found != advices.end()) return found->text;
  if (is_late_cuda_error(error_number))
    return "; the work at fault was given to the device earlier: with CUDA_LAUNCH_BLOCKING=1 the "
           "call that fails is its own, and compute-sanitizer shows the place";
  return "";
}

}  // namespace strata
