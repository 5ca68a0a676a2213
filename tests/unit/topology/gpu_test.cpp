#include "strata/topology/gpu.hpp"

#include <gtest/gtest.h>

#include "src/topology/gpu_files.hpp"
#include "unit/topology/fake_system.hpp"

namespace strata {
namespace {

void put_gpu(const FakeSystem& system, const std::string& address, const std::string& kind) {
  const std::string device = "sys/devices/pci0000:40/" + address;
  system.put(device + "/vendor", "0x10de");
  system.put(device + "/class", kind);
  system.put(device + "/numa_node", "1");
  system.put(device + "/current_link_speed", "32.0 GT/s PCIe");
  system.put(device + "/current_link_width", "16");
  system.link("sys/bus/pci/devices/" + address, device);
}

TEST(Gpus, AreFoundByClassAndVendorInTheOrderOfTheirAddresses) {
  FakeSystem system;
  put_gpu(system, "0000:c1:00.0", "0x030200");
  put_gpu(system, "0000:41:00.0", "0x030000");
  put_gpu(system, "0000:41:00.1", "0x040300");  // its sound
  system.put("sys/devices/pci0000:00/0000:00:03.0/vendor", "0x1af4");
  system.put("sys/devices/pci0000:00/0000:00:03.0/class", "0x030000");
  system.link("sys/bus/pci/devices/0000:00:03.0", "sys/devices/pci0000:00/0000:00:03.0");
  const GpuInventory inventory = read_gpus(system.roots());
  ASSERT_EQ(inventory.gpus.size(), 2u);
  EXPECT_EQ(inventory.gpus[0].pci_address, "0000:41:00.0");
  EXPECT_EQ(inventory.gpus[1].pci_address, "0000:c1:00.0");
  EXPECT_EQ(inventory.gpus[0].numa_node, 1);
  EXPECT_EQ(inventory.gpus[0].pcie_link, "32.0 GT/s PCIe x16");
  EXPECT_EQ(inventory.gpus[0].driver, "");
  EXPECT_EQ(inventory.driver_version, "");
}

TEST(Gpus, HaveTheNameThatTheDriverTells) {
  FakeSystem system;
  put_gpu(system, "0000:41:00.0", "0x030200");
  system.link("sys/devices/pci0000:40/0000:41:00.0/driver", "sys/bus/pci/drivers/nvidia");
  system.put("proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15\n"
             "GCC version:  gcc version 12.2.0");
  system.put("proc/driver/nvidia/gpus/0000:41:00.0/information",
             "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 53");
  const GpuInventory inventory = read_gpus(system.roots());
  EXPECT_EQ(inventory.driver_version, "535.104.05");
  ASSERT_EQ(inventory.gpus.size(), 1u);
  EXPECT_EQ(inventory.gpus[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(inventory.gpus[0].driver, "nvidia");
}

TEST(Gpus, ReadTheVersionOfTheOpenDriverToo) {
  FakeSystem system;
  system.put("proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build");
  EXPECT_EQ(read_gpus(system.roots()).driver_version, "570.86.15");
}

TEST(Gpus, AreNoneOnABareMachine) {
  FakeSystem system;
  EXPECT_TRUE(read_gpus(system.roots()).gpus.empty());
}

}  // namespace
}  // namespace strata
