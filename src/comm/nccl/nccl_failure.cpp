#include "comm/nccl/nccl_failure.hpp"

#include <fmt/format.h>

#include <array>

#include "strata/core/error.hpp"

namespace strata {
namespace {

std::string_view name_of(NcclStatus status) {
  static constexpr std::array<std::string_view, 8> names{
      "ncclSuccess",         "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError",
      "ncclInvalidArgument", "ncclInvalidUsage",       "ncclRemoteError", "ncclInProgress"};
  const auto index = static_cast<std::size_t>(status);
  return index < names.size() ? names[index] : "an unknown result";
}

std::string_view advice_for(NcclStatus status) {
  switch (static_cast<int>(status)) {
    case 1:
      return "; a CUDA call of NCCL failed, often because the GPU's memory is full: lower "
             "offload.gpu_limit; or the CUDA driver is older than NCCL was built for";
    case 2:
      return "; NCCL needs sockets between the hosts (NCCL_SOCKET_IFNAME names the interface) and "
             "shared memory on each (/dev/shm of a container is often too small)";
    case 5:
      return "; two ranks may have the same GPU: every process must see all of its host's";
    case 6:
      return "; another rank's process or device has failed: see what it said";
    default:
      return "";
  }
}

}  // namespace

std::string nccl_failure(NcclApi& api, NcclStatus status, std::string_view call) {
  const std::string last = api.last_error();
  return fmt::format("{}: {} ({}): {}{}{}{}; NCCL_DEBUG=WARN tells more", call, name_of(status),
                     static_cast<int>(status), api.status_text(status), last.empty() ? "" : "; ",
                     last, advice_for(status));
}

void check(NcclApi& api, NcclStatus status, std::string_view call) {
  if (is_error(status)) throw Error(nccl_failure(api, status, call));
}

// Up to 2.8 a version had one digit less.
std::string nccl_version_text(int version) {
  const int major = version < 10000 ? version / 1000 : version / 10000;
  const int rest = version < 10000 ? version % 1000 : version % 10000;
  return fmt::format("{}.{}.{}", major, rest / 100, rest % 100);
}

int usable_nccl_version(NcclApi& api) {
  int version = 0;
  check(api, api.version(version), "ncclGetVersion");
  const int least = nccl_major * 10000 + nccl_minor_min * 100;
  if (version >= least && version / 10000 == nccl_major) return version;
  throw ConfigError(
      fmt::format("the NCCL library of this machine is {}, and Strata needs {}.{} or a newer {}.x: "
                  "install one, or put its folder first in LD_LIBRARY_PATH",
                  nccl_version_text(version), nccl_major, nccl_minor_min, nccl_major));
}

}  // namespace strata
