#include "strata/topology/host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "src/topology/host_files.hpp"
#include "strata/core/bytes.hpp"
#include "unit/topology/fake_system.hpp"

namespace strata {
namespace {

using ::testing::ElementsAre;

TEST(Host, ReadsKernelAndProcessor) {
  FakeSystem system;
  system.put("proc/sys/kernel/osrelease", "6.1.0-18-amd64");
  system.put("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9654\nflags\t: fpu");
  const HostFacts facts = read_host_facts(system.roots());
  EXPECT_EQ(facts.kernel_release, "6.1.0-18-amd64");
  EXPECT_EQ(facts.kernel, (KernelVersion{6, 1}));
  EXPECT_EQ(facts.cpu, "AMD EPYC 9654");
}

TEST(Host, ReadsPagesAndMemory) {
  FakeSystem system;
  system.put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
  system.put("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152");
  system.put("proc/meminfo",
             "MemTotal:  1000 kB\nMemAvailable: 600 kB\nSwapTotal: 500 kB\nSwapFree: 400 kB\n"
             "HugePages_Total:      12\nHugePages_Free:        7");
  const HostFacts facts = read_host_facts(system.roots());
  EXPECT_EQ(facts.huge_pages.mode, "madvise");
  EXPECT_EQ(facts.huge_pages.page_bytes, 2 * MiB);
  EXPECT_EQ(facts.huge_pages.reserved, 12u);
  EXPECT_EQ(facts.huge_pages.reserved_free, 7u);
  EXPECT_EQ(facts.memory_bytes, 1000 * KiB);
  EXPECT_EQ(facts.memory_available_bytes, 600 * KiB);
  EXPECT_EQ(facts.swap_bytes, 500 * KiB);
  EXPECT_EQ(facts.swap_used_bytes, 100 * KiB);
}

TEST(Host, ReadsLimitsAndWhatLiftsThem) {
  FakeSystem system;
  system.put("proc/self/limits",
             "Limit                     Soft Limit           Hard Limit           Units\n"
             "Max locked memory         8388608              unlimited            bytes\n"
             "Max open files            1024                 524288               files");
  system.put("proc/self/status", "CapEff:\t0000000000004000\nSeccomp:\t2\nCpus_allowed_list:\t1,3");
  system.put("proc/self/uid_map", "         0          0 4294967295");
  const HostFacts facts = read_host_facts(system.roots());
  EXPECT_EQ(facts.locked_bytes.soft, 8 * MiB);
  EXPECT_FALSE(facts.locked_bytes.hard);
  EXPECT_EQ(facts.open_files.soft, 1024u);
  EXPECT_EQ(facts.open_files.hard, 524288u);
  EXPECT_TRUE(facts.may_lock_any);
  EXPECT_TRUE(facts.is_filtered);
  EXPECT_THAT(facts.allowed_cores, ElementsAre(1, 3));
}

TEST(Host, CountsNoPrivilegeOfAUserNamespace) {
  FakeSystem system;
  system.put("proc/self/status", "CapEff:\t000001ffffffffff");
  system.put("proc/self/uid_map", "0 1000 1");
  EXPECT_FALSE(read_host_facts(system.roots()).may_lock_any);
}

TEST(Host, ReadsPlainProcessesAsWithoutPrivilegeOrFilter) {
  FakeSystem system;
  system.put("proc/self/status", "CapEff:\t0000000000000000\nSeccomp:\t0");
  const HostFacts facts = read_host_facts(system.roots());
  EXPECT_FALSE(facts.may_lock_any || facts.is_filtered);
}

TEST(Host, ReadsSwitchesCoresGroupsAndDistances) {
  FakeSystem system;
  system.put("proc/sys/kernel/io_uring_disabled", "2");
  system.put("sys/devices/system/cpu/online", "0-2,6");
  system.put("sys/devices/system/node/online", "0,2");
  system.put("sys/devices/system/node/node0/distance", "10 21");
  system.put("sys/devices/system/node/node2/distance", "21 10");
  system.put("proc/self/cgroup", "0::/job");
  system.put("sys/fs/cgroup/job/cpu.max", "150000 100000");
  const HostFacts facts = read_host_facts(system.roots());
  EXPECT_EQ(facts.io_uring_disabled, 2);
  EXPECT_THAT(facts.online_cores, ElementsAre(0, 1, 2, 6));
  EXPECT_EQ(facts.distances.at(0).at(2), 21);
  EXPECT_EQ(facts.distances.at(2).at(2), 10);
  EXPECT_DOUBLE_EQ(facts.cgroup.cpus.value(), 1.5);
}

TEST(Host, KnowsNothingWhereNothingIsTold) {
  FakeSystem system;
  system.put("proc/sys/kernel/osrelease", "odd");
  system.put("proc/self/status", "CapEff:\tzz\nCpus_allowed_list:\t9-,-,4-2,0-999999999");
  const HostFacts facts = read_host_facts(system.roots());
  EXPECT_FALSE(facts.kernel || facts.io_uring_disabled || facts.locked_bytes.soft);
  EXPECT_EQ(facts.huge_pages.mode, "");
  EXPECT_FALSE(facts.may_lock_any);
  EXPECT_TRUE(facts.allowed_cores.empty());
  EXPECT_TRUE(facts.distances.empty());
}

TEST(Host, AgreesWithTheKernelOnThisMachine) {
  const HostFacts facts = read_host_facts();
  EXPECT_TRUE(facts.kernel);
  EXPECT_GT(facts.memory_bytes, 0u);
  EXPECT_FALSE(facts.allowed_cores.empty());
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur != RLIM_INFINITY) {
    EXPECT_EQ(facts.open_files.soft, limit.rlim_cur);
  }
}

}  // namespace
}  // namespace strata
