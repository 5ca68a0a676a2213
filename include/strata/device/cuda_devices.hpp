#pragma once
// What the CUDA runtime tells of this machine's devices. A value.

#include <cstdint>
#include <string>
#include <vector>

namespace strata {

// Another device whose memory a device may reach.
struct CudaPeer {
  int ordinal = 0;
  // Atomic operations work over the link: NVLink; over PCIe they do not.
  bool has_native_atomics = false;
};

struct CudaDeviceFacts {
  int ordinal = 0;
  std::string name;         // "NVIDIA H100 80GB HBM3"
  std::string pci_address;  // "0000:41:00.0", as GpuFacts has it
  int compute_major = 0, compute_minor = 0;
  int num_multiprocessors = 0;
  int num_copy_engines = 0;  // two or more: both directions at once
  std::uint64_t memory_bytes = 0;
  int numa_node = -1;  // of the host, nearest to the device; -1: the driver does not tell
  std::vector<CudaPeer> peers;
};

struct CudaInventory {
  bool is_built = true;                         // this build has the CUDA back end
  std::string failure;                          // why there is no device; empty: there is
  bool is_hidden = false;                       // CUDA_VISIBLE_DEVICES hides all there may be
  std::string driver_version, runtime_version;  // of CUDA: "13.0"; empty: no driver
  std::vector<CudaDeviceFacts> devices;         // by ordinal
};

// Whether a value of CUDA_VISIBLE_DEVICES hides every device; null: it is not set. "NoDevFiles" is
// Slurm's for a job that was given none.
bool hides_all_devices(const char* visible_devices);

// Never throws for what the driver says: that is `failure`.
CudaInventory read_cuda_devices();

}  // namespace strata
