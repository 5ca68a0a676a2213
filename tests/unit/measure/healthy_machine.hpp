#pragma once
// Facts of a machine with which nothing is wrong, for tests that then spoil one of them.

#include "src/measure/doctor_facts.hpp"
#include "strata/core/bytes.hpp"

namespace strata {

inline DriveFacts healthy_drive(const std::string& path, const std::string& disk) {
  DriveFacts drive;
  drive.path = drive.mount_point = path;
  drive.file_system = "xfs";
  drive.mount_options = "rw";
  drive.total_bytes = 2000 * GiB;
  drive.free_bytes = 1200 * GiB;
  drive.device = "/dev/" + disk + "p1";
  drive.disk = disk;
  drive.model = "Samsung SSD 990 PRO";
  drive.rotational = false;
  drive.requests_max = 1023;
  drive.request_bytes_max = 128 * KiB;
  drive.scheduler = "none";
  drive.write_cache = "write back";
  drive.numa_node = 0;
  drive.pcie_link = "16.0 GT/s PCIe x4";
  drive.direct_alignment = 512;
  return drive;
}

inline DirectoryFacts healthy_directory(const std::string& path, const std::string& disk) {
  return {path, path, "", 0, healthy_drive(path, disk)};
}

inline HostFacts healthy_host() {
  HostFacts host;
  host.kernel_release = "6.8.0";
  host.kernel = KernelVersion{6, 8};
  host.cpu = "AMD EPYC 9654";
  host.huge_pages = {"madvise", 2 * MiB, 0, 0};
  host.open_files = {65536, 65536};
  host.memory_bytes = 256 * GiB;
  host.memory_available_bytes = 250 * GiB;
  host.online_cores = host.allowed_cores = {0, 1, 2, 3, 4, 5, 6, 7};
  host.distances = {{0, {{0, 10}, {1, 21}}}, {1, {{0, 21}, {1, 10}}}};
  return host;
}

inline Topology healthy_topology() {
  Topology topology;
  topology.nodes = {{0, {0, 1, 2, 3}, 128 * GiB}, {1, {4, 5, 6, 7}, 128 * GiB}};
  topology.usable_cores = 8;
  topology.memory_bytes = 256 * GiB;
  topology.available_memory_bytes = 250 * GiB;
  return topology;
}

inline CudaInventory healthy_cuda() {
  CudaInventory cuda;
  cuda.driver_version = cuda.runtime_version = "13.0";
  cuda.devices = {{0, "NVIDIA H100 80GB HBM3", "0000:41:00.0", 9, 0, 132, 3, 80 * GiB, 0, {}}};
  return cuda;
}

inline DoctorFacts healthy_machine() {
  DoctorFacts facts;
  facts.host = healthy_host();
  facts.topology = healthy_topology();
  facts.uring.description = "depth 32";
  facts.gpus.driver_version = "570.86.15";
  facts.gpus.gpus = {{"0000:41:00.0", "NVIDIA H100 80GB HBM3", "nvidia", 0, "32.0 GT/s PCIe x16"}};
  facts.cuda = healthy_cuda();
  facts.num_usable_gpus = 1;
  facts.drives = {healthy_directory("/data", "nvme0n1"), healthy_directory("/more", "nvme1n1")};
  facts.output = healthy_directory("/out", "nvme2n1");
  return facts;
}

}  // namespace strata
