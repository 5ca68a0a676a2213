#include "strata/measure/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "unit/measure/healthy_machine.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Finding line(const DoctorFacts& facts, const std::string& topic) {
  for (Finding& finding : diagnose(facts)) {
    if (finding.topic == topic) return finding;
  }
  return {"no line " + topic, Health::broken, "", ""};
}

void expect(const Finding& finding, Health health, const std::string& advice) {
  EXPECT_EQ(finding.health, health) << finding.topic << ": " << finding.facts;
  EXPECT_THAT(finding.advice, HasSubstr(advice)) << finding.topic;
}

TEST(Doctor, FindsNothingWrongWithAHealthyMachine) {
  for (const Finding& finding : diagnose(healthy_machine())) {
    EXPECT_EQ(finding.health, Health::ok) << finding.topic << ": " << finding.advice;
    EXPECT_EQ(finding.advice, "") << finding.topic;
    EXPECT_FALSE(finding.facts.empty()) << finding.topic;
  }
}

TEST(Doctor, TellsWhoHasADrive) {
  DoctorFacts facts = healthy_machine();
  facts.drives.at(0).user = "process 7 on host a since yesterday";
  expect(line(facts, "drive /data"), Health::degraded,
         "in use by a run (process 7 on host a since yesterday)");
}

TEST(Doctor, NamesWhatAnOldKernelLacks) {
  DoctorFacts facts = healthy_machine();
  EXPECT_THAT(line(facts, "kernel").facts, HasSubstr("Linux 6.8.0"));
  facts.host.kernel = KernelVersion{5, 19};
  expect(line(facts, "kernel"), Health::degraded, "older than 6.1");
  EXPECT_THAT(line(facts, "kernel").advice, Not(HasSubstr("5.19")));
  facts.host.kernel = KernelVersion{5, 15};
  expect(line(facts, "kernel"), Health::degraded, "older than 5.19");
  EXPECT_THAT(line(facts, "kernel").advice, Not(HasSubstr("5.6")));
  facts.host.kernel = KernelVersion{5, 4};
  expect(line(facts, "kernel"), Health::degraded, "older than 5.6, no io_uring");
  facts.host.kernel = {};
  expect(line(facts, "kernel"), Health::degraded, "cannot be read");
}

TEST(Doctor, ShowsTheEngineThatWasMade) {
  EXPECT_EQ(line(healthy_machine(), "io_uring").facts, "works: depth 32");
}

TEST(Doctor, ExplainsWhyIoUringIsRefused) {
  DoctorFacts facts = healthy_machine();
  facts.uring = {"", "cannot start io_uring: Operation not permitted", EPERM};
  facts.host.is_filtered = true;
  expect(line(facts, "io_uring"), Health::degraded, "`threads` engine");
  expect(line(facts, "io_uring"), Health::degraded, "seccomp");
  facts.host.io_uring_disabled = 2;
  expect(line(facts, "io_uring"), Health::degraded, "sysctl -w kernel.io_uring_disabled=0");
  EXPECT_THAT(line(facts, "io_uring").advice,
              AllOf(Not(HasSubstr("seccomp")), Not(HasSubstr("io_uring_group"))));
  facts.host.io_uring_disabled = 1;
  expect(line(facts, "io_uring"), Health::degraded, "io_uring_group");
  EXPECT_THAT(line(facts, "io_uring").facts, HasSubstr("Operation not permitted"));
}

TEST(Doctor, TellsAnOldKernelFromALimitWhenIoUringIsRefused) {
  DoctorFacts facts = healthy_machine();
  facts.uring = {"", "refused", ENOSYS};
  expect(line(facts, "io_uring"), Health::degraded, "5.6 or newer");
  facts.uring.error_number = ENOMEM;
  expect(line(facts, "io_uring"), Health::degraded, "ulimit -l");
  facts.uring.error_number = EMFILE;
  expect(line(facts, "io_uring"), Health::degraded, "ulimit -n");
  facts.uring.error_number = EINVAL;
  expect(line(facts, "io_uring"), Health::degraded, "ask the administrator");
}

TEST(Doctor, ComparesTheLimitOfLockedMemoryWithWhatARunRegisters) {
  DoctorFacts facts = healthy_machine();
  facts.host.locked_bytes = {8 * MiB, 16 * MiB};
  expect(line(facts, "memlock"), Health::degraded, "as much as 250 GiB");
  EXPECT_THAT(line(facts, "memlock").advice, HasSubstr("hard limit 16.0 MiB"));
  facts.host.locked_bytes.soft = 250 * GiB;
  expect(line(facts, "memlock"), Health::ok, "");
}

TEST(Doctor, NeedsNoLockedMemoryWithThePrivilegeOrWithoutIoUring) {
  DoctorFacts facts = healthy_machine();
  facts.host.locked_bytes = {8 * MiB, 8 * MiB};
  facts.host.may_lock_any = true;
  EXPECT_EQ(line(facts, "memlock").health, Health::ok);
  EXPECT_THAT(line(facts, "memlock").facts, HasSubstr("CAP_IPC_LOCK"));
  facts.host.may_lock_any = false;
  facts.uring.refusal = "refused";
  EXPECT_EQ(line(facts, "memlock").health, Health::ok);
  EXPECT_THAT(line(facts, "memlock").facts, HasSubstr("not needed"));
}

TEST(Doctor, SaysWhatSmallPagesCost) {
  DoctorFacts facts = healthy_machine();
  facts.host.huge_pages.mode = "always";
  EXPECT_EQ(line(facts, "huge pages").health, Health::ok);
  for (const char* mode : {"never", ""}) {
    facts.host.huge_pages.mode = mode;
    expect(line(facts, "huge pages"), Health::degraded,
           "about a third of the read rate was measured with 4 KiB pages");
  }
  facts.host.huge_pages.reserved = 12;
  EXPECT_THAT(line(facts, "huge pages").facts, HasSubstr("12 reserved"));
}

TEST(Doctor, WarnsOfFewOpenFiles) {
  DoctorFacts facts = healthy_machine();
  facts.host.open_files = {1023, 4096};
  expect(line(facts, "open files"), Health::degraded, "ulimit -n 4096");
  facts.host.open_files = {63, {}};
  expect(line(facts, "open files"), Health::broken, "ulimit -n 65536");
  facts.host.open_files = {500, 500};
  expect(line(facts, "open files"), Health::degraded, "the hard limit is no higher");
  facts.host.open_files = {};
  EXPECT_EQ(line(facts, "open files").facts, "limit unlimited");
}

TEST(Doctor, ShowsMemoryWithTheLimitOfACgroup) {
  DoctorFacts facts = healthy_machine();
  EXPECT_THAT(line(facts, "memory").facts, Not(HasSubstr("cgroup")));
  facts.topology.memory_bytes = 64 * GiB;
  facts.topology.available_memory_bytes = 60 * GiB;
  const Finding finding = line(facts, "memory");
  EXPECT_EQ(finding.health, Health::ok);
  EXPECT_THAT(finding.facts, HasSubstr("60.0 GiB of 64.0 GiB available, limited by the cgroup"));
  EXPECT_THAT(finding.facts, HasSubstr("the machine has 256 GiB"));
}

TEST(Doctor, WarnsOfMemoryInUseAndOfSwapping) {
  DoctorFacts facts = healthy_machine();
  facts.topology.available_memory_bytes = 100 * GiB;
  expect(line(facts, "memory"), Health::degraded, "more than half is in use");
  facts = healthy_machine();
  facts.host.swap_bytes = 64 * GiB;
  EXPECT_EQ(line(facts, "memory").health, Health::ok);
  facts.host.swap_used_bytes = 20 * GiB;
  expect(line(facts, "memory"), Health::degraded, "swaps");
}

TEST(Doctor, WarnsOfOneCore) {
  DoctorFacts facts = healthy_machine();
  facts.topology.nodes = {{0, {3}, GiB}};
  facts.topology.usable_cores = 1;
  facts.host.allowed_cores = {3};
  expect(line(facts, "cores"), Health::degraded, "take turns on one core");
  EXPECT_THAT(line(facts, "cores").facts, HasSubstr("1 usable of 8"));
  EXPECT_THAT(line(facts, "cores").facts, HasSubstr("cpuset or affinity: core 3"));
}

TEST(Doctor, WarnsOfAQuotaBelowTheAffinity) {
  DoctorFacts facts = healthy_machine();
  facts.host.cgroup.cpus = 8.0;
  EXPECT_EQ(line(facts, "cores").health, Health::ok);
  facts.host.cgroup.cpus = 2.5;
  facts.topology.usable_cores = 3;
  expect(line(facts, "cores"), Health::degraded, "quota is 2.5 of 8 cores");
}

TEST(Doctor, ReportsAMachineThatHwlocCannotRead) {
  DoctorFacts facts = healthy_machine();
  facts.topology = {};
  facts.topology_failure = "hwloc cannot be started";
  expect(line(facts, "cores"), Health::degraded, "hwloc cannot be started");
  expect(line(facts, "threads"), Health::degraded, "no core is known");
}

TEST(Doctor, ShowsThreadsAndNodesOfEachRank) {
  DoctorFacts facts = healthy_machine();
  EXPECT_EQ(line(facts, "threads").facts,
            "rank 0: 1 compute and 7 update threads on nodes 0-1, cores 1-7");
  facts.num_usable_gpus = 0;
  EXPECT_EQ(line(facts, "threads").facts,
            "rank 0: 8 compute and 8 update threads on nodes 0-1, cores 0-7");
  facts.num_usable_gpus = 2;
  facts.gpus.gpus.push_back(facts.gpus.gpus[0]);
  facts.gpus.gpus[0].numa_node = 1;
  EXPECT_EQ(line(facts, "threads").facts,
            "rank 0: 1 compute and 3 update threads on node 1, cores 5-7; "
            "rank 1: 1 compute and 3 update threads on node 0, cores 1-3");
}

TEST(Doctor, WarnsWhenRanksShareCores) {
  DoctorFacts facts = healthy_machine();
  facts.topology.nodes = {{0, {0, 1}, GiB}};
  facts.topology.usable_cores = 2;
  facts.num_usable_gpus = 4;
  expect(line(facts, "threads"), Health::degraded, "4 ranks share 2 cores");
}

TEST(Doctor, NotesThatOmpNumThreadsIsIgnored) {
  DoctorFacts facts = healthy_machine();
  EXPECT_THAT(line(facts, "OpenMP").topic, HasSubstr("no line"));
  facts.omp_num_threads = "4";
  EXPECT_EQ(line(facts, "OpenMP").health, Health::ok);
  EXPECT_THAT(line(facts, "OpenMP").facts, HasSubstr("OMP_NUM_THREADS is 4; Strata ignores it"));
}

TEST(Doctor, ShowsTheNodesOfTheMachine) {
  DoctorFacts facts = healthy_machine();
  facts.topology.nodes.push_back({2, {}, 64 * GiB});
  EXPECT_EQ(line(facts, "NUMA").facts,
            "3 nodes; node 0: 128 GiB, cores 0-3; node 1: 128 GiB, cores 4-7; node 2: 64.0 GiB, no "
            "usable core");
}

TEST(Doctor, WarnsOfADriveFarFromEveryGpu) {
  DoctorFacts facts = healthy_machine();
  facts.drives[1].drive.numa_node = 1;
  expect(line(facts, "NUMA"), Health::degraded, "drive nvme1n1 is on node 1");
  EXPECT_THAT(line(facts, "NUMA").advice, HasSubstr("distance 21, where 10 is home"));
  facts.gpus.gpus.push_back(facts.gpus.gpus[0]);
  facts.gpus.gpus[1].numa_node = 1;
  EXPECT_EQ(line(facts, "NUMA").health, Health::ok) << "a GPU is near each";
}

TEST(Doctor, SaysNothingOfDistancesThatMatterToNobody) {
  DoctorFacts facts = healthy_machine();
  facts.drives[1].drive.numa_node = 1;
  facts.num_usable_gpus = 0;
  EXPECT_EQ(line(facts, "NUMA").health, Health::ok) << "the CPU computes";
  facts = healthy_machine();
  facts.drives[1].drive.numa_node = {};
  EXPECT_EQ(line(facts, "NUMA").health, Health::ok) << "the drive's node is unknown";
}

TEST(Doctor, ShowsGpusWithDriverNodeAndLink) {
  EXPECT_EQ(line(healthy_machine(), "GPUs").facts,
            "driver 570.86.15; NVIDIA H100 80GB HBM3 at 0000:41:00.0, node 0, 32.0 GT/s PCIe x16");
}

TEST(Doctor, TellsGpusThatAreMissingFromThoseThatCannotBeUsed) {
  DoctorFacts facts = healthy_machine();
  facts.num_usable_gpus = 0;
  facts.cuda.failure = "the driver is older than CUDA";
  expect(line(facts, "GPUs"), Health::broken, "CUDA cannot use it: the driver is older than CUDA");
  facts.cuda.is_hidden = true;
  expect(line(facts, "GPUs"), Health::degraded, "CUDA_VISIBLE_DEVICES hides all");
  facts.cuda.is_hidden = false;
  facts.gpus.gpus[0].driver = "vfio-pci";
  expect(line(facts, "GPUs"), Health::degraded, "the CPU computes");
  facts.gpus.driver_version = "";
  facts.gpus.gpus[0].driver = "nouveau";
  expect(line(facts, "GPUs"), Health::broken, "no driver");
  EXPECT_THAT(line(facts, "GPUs").facts, HasSubstr("driven by nouveau"));
  facts.gpus = {};
  expect(line(facts, "GPUs"), Health::degraded, "the CPU computes");
  EXPECT_EQ(line(facts, "GPUs").facts, "none");
}

TEST(Doctor, ShowsWhatADriveIs) {
  const Finding finding = line(healthy_machine(), "drive /data");
  for (const char* part :
       {"nvme0n1 (Samsung SSD 990 PRO)", "xfs on /data", "1.17 TiB of 1.95 TiB free",
        "direct I/O at 512 bytes", "1023 requests of up to 128 KiB", "scheduler none",
        "cache write back", "16.0 GT/s PCIe x4", "node 0", "of 107B parameters"})
    EXPECT_THAT(finding.facts, HasSubstr(part));
}

TEST(Doctor, CallsADirectoryBrokenThatIsMissing) {
  DoctorFacts facts = healthy_machine();
  facts.drives[0].failure = "cannot look at /data: No such file or directory";
  expect(line(facts, "drive /data"), Health::broken, "create the directory");
  EXPECT_THAT(line(facts, "drive /data").facts, HasSubstr("No such file"));
}

TEST(Doctor, CallsADirectoryBrokenThatCannotBeWritten) {
  DoctorFacts facts = healthy_machine();
  facts.drives[0].write_error = EROFS;
  expect(line(facts, "drive /data"), Health::broken, "Read-only file system");
}

TEST(Doctor, CallsMemoryNoDrive) {
  DoctorFacts facts = healthy_machine();
  facts.drives[0].drive.in_memory = true;
  facts.drives[0].drive.file_system = "tmpfs";
  facts.drives[0].drive.direct_alignment = 0;
  expect(line(facts, "drive /data"), Health::broken, "tmpfs keeps files in RAM");
  EXPECT_THAT(line(facts, "drive /data").advice, Not(HasSubstr("page cache")));
}

TEST(Doctor, SaysWhatCachedTransfersCost) {
  DoctorFacts facts = healthy_machine();
  facts.drives[0].drive.direct_alignment = 0;
  expect(line(facts, "drive /data"), Health::degraded, "page cache");
  facts.drives[0].drive.direct_alignment = {};
  EXPECT_EQ(line(facts, "drive /data").health, Health::ok) << "unknown is no verdict";
  EXPECT_THAT(line(facts, "drive /data").facts, HasSubstr("direct I/O not told"));
}

TEST(Doctor, CallsSectorsBrokenThatAreLargerThanOurs) {
  DoctorFacts facts = healthy_machine();
  facts.drives[0].drive.direct_alignment = 4096;
  EXPECT_EQ(line(facts, "drive /data").health, Health::ok);
  facts.drives[0].drive.direct_alignment = 16384;
  expect(line(facts, "drive /data"), Health::broken, "aligned to 16384 bytes");
}

TEST(Doctor, WarnsOfFileSystemsThatHideTheDriveOrAreFarAway) {
  DoctorFacts facts = healthy_machine();
  facts.drives[0].drive.file_system = "overlay";
  expect(line(facts, "drive /data"), Health::degraded, "container's own layer");
  for (const char* far : {"nfs4", "fuse.sshfs", "lustre", "9p"}) {
    facts.drives[0].drive.file_system = far;
    expect(line(facts, "drive /data"), Health::degraded, "no local drive");
  }
}

TEST(Doctor, WarnsOfHardDisksButNotOfVirtualOnesThatOnlySaySo) {
  DoctorFacts facts = healthy_machine();
  facts.drives[0].drive.rotational = true;
  expect(line(facts, "drive /data"), Health::degraded, "a hard disk");
  facts.drives[0].drive.disk = "vda";
  EXPECT_EQ(line(facts, "drive /data").health, Health::ok);
  EXPECT_THAT(line(facts, "drive /data").facts, HasSubstr("a virtual disk"));
}

TEST(Doctor, WarnsOfEncryption) {
  DoctorFacts facts = healthy_machine();
  facts.drives[0].drive.model = "dm-crypt luks";
  expect(line(facts, "drive /data"), Health::degraded, "encrypted");
}

TEST(Doctor, WarnsOfLittleSpaceAndRefusesNone) {
  DoctorFacts facts = healthy_machine();
  facts.drives[0].drive.free_bytes = 16 * GiB;
  EXPECT_EQ(line(facts, "drive /data").health, Health::ok);
  facts.drives[0].drive.free_bytes -= 1;
  expect(line(facts, "drive /data"), Health::degraded, "little room");
  facts.drives[0].drive.free_bytes = GiB - 1;
  expect(line(facts, "drive /data"), Health::broken, "less than 1 GiB is free");
  EXPECT_THAT(line(facts, "drive /data").facts, HasSubstr("state of 89M parameters"));
}

TEST(Doctor, WarnsOfTwoPathsOnOneDisk) {
  DoctorFacts facts = healthy_machine();
  facts.drives[1].drive.disk = "nvme0n1";
  EXPECT_EQ(line(facts, "drive /data").health, Health::ok) << "the first is not to blame";
  expect(line(facts, "drive /more"), Health::degraded, "on the same disk as /data");
  for (DirectoryFacts& directory : facts.drives) directory.drive.disk = "";
  EXPECT_EQ(line(facts, "drive /more").health, Health::ok) << "different mounts, no disk known";
  facts.drives[1].drive.mount_point = facts.drives[0].drive.mount_point;
  expect(line(facts, "drive /more"), Health::degraded, "on the same disk as /data");
}

TEST(Doctor, BlamesNoPathThatCouldNotBeLookedAt) {
  DoctorFacts facts = healthy_machine();
  facts.drives[0].failure = "missing";
  facts.drives[1].drive.disk = "nvme0n1";
  EXPECT_EQ(line(facts, "drive /more").health, Health::ok);
}

TEST(Doctor, JudgesTheOutputDirectory) {
  DoctorFacts facts = healthy_machine();
  EXPECT_EQ(line(facts, "output /out").health, Health::ok);
  facts.output->drive.in_memory = true;
  expect(line(facts, "output /out"), Health::degraded, "lost when the machine stops");
  facts.output->drive.free_bytes = 0;
  expect(line(facts, "output /out"), Health::broken, "less than 1 GiB");
  facts.output->write_error = EACCES;
  expect(line(facts, "output /out"), Health::broken, "/out cannot be written (Permission denied)");
  facts.output->failure = "cannot look at /out";
  expect(line(facts, "output /out"), Health::broken, "output_dir");
  facts.output.reset();
  EXPECT_THAT(line(facts, "output /out").topic, HasSubstr("no line"));
}

TEST(Doctor, LooksAtThisMachineWithoutThrowing) {
  const std::vector<Finding> findings =
      examine({{::testing::TempDir(), "/no/such/drive"}, ::testing::TempDir() + "/not/made/yet"});
  EXPECT_GE(findings.size(), 13u);
  for (const Finding& finding : findings) {
    EXPECT_FALSE(finding.facts.empty()) << finding.topic;
    EXPECT_EQ(finding.health == Health::ok, finding.advice.empty()) << finding.topic;
  }
  EXPECT_EQ(overall_health(findings), Health::broken) << "a drive is missing";
}

}  // namespace
}  // namespace strata
