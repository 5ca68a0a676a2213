#include <fmt/format.h>

#include "measure/doctor_findings.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

constexpr int compute_major_min = 8;  // of the architectures that the build has code for

std::string peers_text(const std::vector<CudaPeer>& peers) {
  std::string text;
  for (const CudaPeer& peer : peers) {
    text += text.empty() ? ", reaches " : ", ";
    text += fmt::format("{} over {}", peer.ordinal, peer.has_native_atomics ? "NVLink" : "PCIe");
  }
  return text;
}

std::string device_text(const CudaDeviceFacts& device) {
  std::string text =
      fmt::format("device {}: {} at {}, compute {}.{}, {}, {} multiprocessors", device.ordinal,
                  device.name, device.pci_address, device.compute_major, device.compute_minor,
                  format_bytes(device.memory_bytes), device.num_multiprocessors);
  if (device.numa_node >= 0) text += fmt::format(", node {}", device.numa_node);
  return text + peers_text(device.peers);
}

void judge(Finding& finding, const CudaDeviceFacts& device) {
  if (device.compute_major < compute_major_min)
    worsen(
        finding, Health::broken,
        fmt::format("device {} has compute {}.{}; this build has code for {}.0 and newer. Hide "
                    "it with CUDA_VISIBLE_DEVICES",
                    device.ordinal, device.compute_major, device.compute_minor, compute_major_min));
  if (device.num_copy_engines < 2)
    worsen(finding, Health::degraded,
           fmt::format("device {} has {} copy engine: transfers to it and from it take turns",
                       device.ordinal, device.num_copy_engines));
}

}  // namespace

Finding find_cuda(const CudaInventory& cuda) {
  Finding finding{"CUDA", Health::ok, "", ""};
  finding.facts = fmt::format("built for {}; driver's {}",
                              cuda.runtime_version.empty() ? "?" : cuda.runtime_version,
                              cuda.driver_version.empty() ? "none" : cuda.driver_version);
  if (!cuda.failure.empty()) finding.facts += "; no device: " + cuda.failure;
  for (const CudaDeviceFacts& device : cuda.devices) {
    finding.facts += "; " + device_text(device);
    judge(finding, device);
  }
  if (cuda.devices.size() > 1)
    finding.facts +=
        fmt::format("; a run uses one for each rank: ranks: {} uses all", cuda.devices.size());
  return finding;
}

}  // namespace strata
