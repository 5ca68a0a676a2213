#include "strata/topology/drive.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "src/topology/drive_description.hpp"
#include "strata/core/error.hpp"
#include "unit/topology/fake_system.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

class DriveTest : public ::testing::Test {
 protected:
  DriveFacts describe(const std::string& path) const {
    return describe_drive(path, std::nullopt, system_.roots());
  }
  void put_queue(const std::string& disk, const std::string& rotational) const {
    system_.put(disk + "/queue/rotational", rotational);
    system_.put(disk + "/queue/logical_block_size", "512");
    system_.put(disk + "/queue/physical_block_size", "4096");
    system_.put(disk + "/queue/nr_requests", "1023");
    system_.put(disk + "/queue/max_sectors_kb", "128");
    system_.put(disk + "/queue/scheduler", "[none] mq-deadline kyber");
    system_.put(disk + "/queue/write_cache", "write through");
  }
  // A drive on PCIe, its second partition mounted on /data.
  void put_nvme() const {
    const std::string pci = "sys/devices/pci0000:00/0000:00:1d.0/0000:02:00.0";
    const std::string disk = pci + "/nvme/nvme0/nvme0n1";
    system_.put(pci + "/numa_node", "1");
    system_.put(pci + "/current_link_speed", "16.0 GT/s PCIe");
    system_.put(pci + "/current_link_width", "4");
    system_.put("sys/devices/pci0000:00/0000:00:1d.0/current_link_width", "16");
    system_.put(pci + "/nvme/nvme0/model", "Samsung SSD 990 PRO 2TB                 ");
    put_queue(disk, "0");
    system_.link(disk + "/device", pci + "/nvme/nvme0");
    system_.put(disk + "/nvme0n1p2/partition", "2");
    system_.link("sys/dev/block/259:2", disk + "/nvme0n1p2");
    system_.link("sys/class/block/nvme0n1p2", disk + "/nvme0n1p2");
  }

  FakeSystem system_;
};

TEST_F(DriveTest, FindsThePartitionsDiskWithModelQueueNodeAndLink) {
  put_nvme();
  system_.mounts("41 27 259:2 / /data rw,noatime - xfs /dev/nvme0n1p2 rw");
  const DriveFacts facts = describe("/data/run");
  EXPECT_EQ(facts.mount_point, "/data");
  EXPECT_EQ(facts.file_system, "xfs");
  EXPECT_EQ(facts.mount_options, "rw,noatime");
  EXPECT_EQ(facts.device, "/dev/nvme0n1p2");
  EXPECT_EQ(facts.disk, "nvme0n1");
  EXPECT_EQ(facts.model, "Samsung SSD 990 PRO 2TB");
  EXPECT_EQ(facts.rotational, false);
  EXPECT_EQ(facts.logical_sector_bytes, 512u);
  EXPECT_EQ(facts.physical_sector_bytes, 4096u);
  EXPECT_EQ(facts.requests_max, 1023u);
  EXPECT_EQ(facts.request_bytes_max, 131072u);
  EXPECT_EQ(facts.scheduler, "none");
  EXPECT_EQ(facts.write_cache, "write through");
  EXPECT_EQ(facts.numa_node, 1);
  EXPECT_EQ(facts.pcie_link, "16.0 GT/s PCIe x4");
}

TEST_F(DriveTest, FindsTheDiskOfABtrfsSubvolumeByItsSource) {
  put_nvme();
  system_.mounts("41 27 0:45 /sub /data rw - btrfs /dev/nvme0n1p2 rw,subvol=/sub");
  EXPECT_EQ(describe("/data/run").disk, "nvme0n1");
}

TEST_F(DriveTest, FindsTheDiskBehindABindMount) {
  put_nvme();
  system_.mounts(
      "27 1 0:50 / / rw - overlay overlay rw\n"
      "41 27 259:2 /srv/scratch /scratch rw - ext4 /dev/nvme0n1p2 rw");
  const DriveFacts facts = describe("/scratch");
  EXPECT_EQ(facts.disk, "nvme0n1");
  EXPECT_EQ(facts.file_system, "ext4");
}

TEST_F(DriveTest, DescribesAVirtualDiskWithoutModelOrLink) {
  const std::string pci = "sys/devices/pci0000:00/0000:00:02.0";
  const std::string disk = pci + "/virtio1/block/vda";
  system_.put(pci + "/numa_node", "-1");
  system_.put(pci + "/current_link_speed", "Unknown");
  system_.put(pci + "/current_link_width", "0");
  put_queue(disk, "1");
  system_.put(disk + "/queue/scheduler", "none");
  system_.link(disk + "/device", pci + "/virtio1");
  system_.link("sys/dev/block/254:0", disk);
  system_.mounts("27 1 254:0 / / rw - ext4 /dev/root rw");
  const DriveFacts facts = describe("/anywhere");
  EXPECT_EQ(facts.device, "/dev/vda");
  EXPECT_EQ(facts.disk, "vda");
  EXPECT_EQ(facts.model, "");
  EXPECT_EQ(facts.scheduler, "none");
  EXPECT_EQ(facts.rotational, true);
  EXPECT_FALSE(facts.numa_node);
  EXPECT_EQ(facts.pcie_link, "");
}

TEST_F(DriveTest, NamesARaidByItsLevel) {
  put_queue("sys/devices/virtual/block/md0", "0");
  system_.put("sys/devices/virtual/block/md0/md/level", "raid0");
  system_.link("sys/dev/block/9:0", "sys/devices/virtual/block/md0");
  system_.mounts("27 1 9:0 / / rw - xfs /dev/md0 rw");
  const DriveFacts facts = describe("/x");
  EXPECT_EQ(facts.disk, "md0");
  EXPECT_EQ(facts.model, "md raid0");
  EXPECT_EQ(facts.logical_sector_bytes, 512u);
}

TEST_F(DriveTest, NamesMappedDevicesByWhatTheyDo) {
  const std::string disk = "sys/devices/virtual/block/dm-0";
  system_.put(disk + "/dm/name", "luks-data");
  system_.put(disk + "/dm/uuid", "CRYPT-LUKS2-0123-luks-data");
  system_.link("sys/dev/block/253:0", disk);
  system_.mounts("27 1 253:0 / / rw - ext4 /dev/mapper/luks-data rw");
  EXPECT_EQ(describe("/x").disk, "dm-0");
  EXPECT_EQ(describe("/x").model, "dm-crypt luks-data");
  system_.put(disk + "/dm/uuid", "LVM-0123");
  EXPECT_EQ(describe("/x").model, "LVM luks-data");
  system_.put(disk + "/dm/uuid", "mpath-1");
  EXPECT_EQ(describe("/x").model, "device mapper luks-data");
}

TEST_F(DriveTest, FindsTheLinkOfADriveWithSeveralPaths) {
  const std::string pci = "sys/devices/pci0000:40/0000:41:00.0";
  const std::string subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys3";
  system_.put(pci + "/numa_node", "0");
  system_.put(pci + "/current_link_speed", "32.0 GT/s PCIe");
  system_.put(pci + "/current_link_width", "2");
  system_.put(subsystem + "/model", "KIOXIA CM7");
  system_.put(subsystem + "/nvme3n1/size", "1");
  system_.link(subsystem + "/nvme3", pci + "/nvme/nvme3");
  system_.link(subsystem + "/nvme3n1/device", subsystem);
  system_.link("sys/dev/block/259:9", subsystem + "/nvme3n1");
  system_.mounts("27 1 259:9 / / rw - xfs /dev/nvme3n1 rw");
  const DriveFacts facts = describe("/x");
  EXPECT_EQ(facts.model, "KIOXIA CM7");
  EXPECT_EQ(facts.numa_node, 0);
  EXPECT_EQ(facts.pcie_link, "32.0 GT/s PCIe x2");
}

TEST_F(DriveTest, HasNoDeviceOnOverlayMemoryAndNetwork) {
  put_nvme();
  system_.mounts(
      "27 1 0:50 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/u\n"
      "28 27 0:51 / /dev/shm rw - tmpfs tmpfs rw\n"
      "29 27 0:52 / /share rw - nfs4 server:/export rw");
  for (const char* path : {"/x", "/dev/shm/x", "/share/x"}) {
    const DriveFacts facts = describe(path);
    EXPECT_EQ(facts.device, "") << path;
    EXPECT_EQ(facts.disk, "") << path;
    EXPECT_FALSE(facts.rotational) << path;
  }
  EXPECT_EQ(describe("/share/x").file_system, "nfs4");
}

TEST_F(DriveTest, KnowsNothingWhereNothingIsTold) {
  const DriveFacts facts = describe("/x");
  EXPECT_EQ(facts.mount_point, "");
  EXPECT_EQ(facts.disk, "");
}

TEST(Drive, IsReadFromThisMachineAndLeavesNothingBehind) {
  FakeSystem scratch;
  const fs::path folder = scratch.roots().proc;
  fs::create_directories(folder);
  const DriveFacts facts = read_drive_facts(folder.string());
  EXPECT_EQ(facts.path, folder.string());
  EXPECT_FALSE(facts.file_system.empty());
  EXPECT_TRUE(folder.string().starts_with(facts.mount_point));
  EXPECT_GT(facts.total_bytes, 0u);
  EXPECT_LE(facts.free_bytes, facts.total_bytes);
  EXPECT_EQ(facts.disk.empty(), facts.device.empty());
  if (facts.direct_alignment.value_or(0) > 0) {
    EXPECT_EQ(*facts.direct_alignment & (*facts.direct_alignment - 1), 0u);
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(Drive, TellsTheDirectAlignmentOfADirectoryThatCannotBeWrittenByAFileThere) {
  FakeSystem scratch;
  scratch.put("proc/file", "x");
  const fs::path folder = scratch.roots().proc;
  const auto before = read_drive_facts(folder.string()).direct_alignment;
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  const auto after = read_drive_facts(folder.string()).direct_alignment;
  fs::permissions(folder, fs::perms::owner_all);
  // Only the kernel's own word is to be had from an old file.
  if (before.value_or(0) > 0) {
    EXPECT_EQ(after, before);
  }
}

TEST(Drive, FollowsALinkToTheDriveItLeadsTo) {
  FakeSystem scratch;
  scratch.link("away", "proc");
  const fs::path link = scratch.roots().proc.parent_path() / "away";
  EXPECT_EQ(read_drive_facts(link.string()).mount_point,
            read_drive_facts(scratch.roots().proc.string()).mount_point);
}

TEST(Drive, IsNamedTwiceInWhateverSpelling) {
  EXPECT_EQ(named_twice({}), std::nullopt);
  EXPECT_EQ(named_twice({"/tmp", "/usr"}), std::nullopt);
  EXPECT_EQ(named_twice({"/usr", "/tmp", "/tmp/"}), "/tmp/");
  EXPECT_EQ(named_twice({"/usr/./lib/..", "/usr"}), "/usr");
  EXPECT_EQ(named_twice({"/not/there", "/not/there/"}), "/not/there/");
}

TEST(Drive, ThrowsWithTheNameOfWhatIsNotThereOrNoDirectory) {
  FakeSystem scratch;
  scratch.put("proc/file", "x");
  for (const std::string name : {"proc/none", "proc/file"}) {
    const std::string path = (scratch.roots().proc.parent_path() / name).string();
    try {
      read_drive_facts(path);
      FAIL() << path;
    } catch (const SystemError& error) {
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
      EXPECT_EQ(error.error_number(), name == "proc/none" ? ENOENT : ENOTDIR);
    }
  }
}

}  // namespace
}  // namespace strata
