#include <fmt/format.h>

#include <cstdlib>

#include "device/cuda/cuda_check.hpp"
#include "device/cuda/cuda_device.hpp"

namespace strata {
namespace {

std::string version_text(int version) {
  return version == 0 ? "" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::vector<CudaPeer> read_peers(CudaApi& api, int ordinal, int count) {
  std::vector<CudaPeer> peers;
  for (int other = 0; other < count; ++other) {
    if (other == ordinal) continue;
    CudaPeer peer{other};
    bool can = false;
    check(api, api.can_access_peer(ordinal, other, can), "cudaDeviceCanAccessPeer");
    if (!can) continue;
    check(api, api.has_native_atomics(ordinal, other, peer.has_native_atomics),
          "cudaDeviceGetP2PAttribute");
    peers.push_back(peer);
  }
  return peers;
}

CudaDeviceFacts read_device(CudaApi& api, int ordinal, int count) {
  CudaDeviceFacts facts;
  check(api, api.device_facts(ordinal, facts), "cudaGetDeviceProperties");
  facts.ordinal = ordinal;
  facts.peers = read_peers(api, ordinal, count);
  return facts;
}

void read_all(CudaApi& api, CudaInventory& inventory) {
  CudaVersions versions;
  check(api, api.versions(versions), "cudaDriverGetVersion");
  inventory.driver_version = version_text(versions.driver);
  inventory.runtime_version = version_text(versions.runtime);
  int count = 0;
  check(api, api.device_count(count), "cudaGetDeviceCount");
  for (int ordinal = 0; ordinal < count; ++ordinal)
    inventory.devices.push_back(read_device(api, ordinal, count));
  if (count == 0) inventory.failure = "the driver knows of no device";
}

}  // namespace

int num_cuda_devices(CudaApi& api) {
  int count = 0;
  if (api.device_count(count) == CudaStatus::success) return count;
  api.take_last_error();
  return 0;
}

bool hides_all_devices(const char* visible_devices) {
  if (visible_devices == nullptr) return false;
  const std::string_view value = visible_devices;
  return value.empty() || value.starts_with('-') || value == "NoDevFiles";
}

CudaInventory read_cuda_devices(CudaApi& api) {
  CudaInventory inventory;
  inventory.is_hidden = hides_all_devices(std::getenv("CUDA_VISIBLE_DEVICES"));
  try {
    read_all(api, inventory);
  } catch (const CudaError& error) {
    api.take_last_error();
    inventory.devices.clear();
    inventory.failure = error.what();
  }
  return inventory;
}

}  // namespace strata
