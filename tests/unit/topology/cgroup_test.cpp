#include "strata/topology/cgroup.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace strata {
namespace {

namespace fs = std::filesystem;

// A made-up /sys/fs/cgroup.
class CgroupTest : public ::testing::Test {
 protected:
  CgroupTest() {
    std::string name = ::testing::TempDir() + "/strata-cgroup-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    root_ = name;
  }
  ~CgroupTest() override { fs::remove_all(root_); }

  void put(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }
  CgroupLimits read(const std::string& membership) { return read_cgroup_limits(root_, membership); }

  fs::path root_;
};

TEST_F(CgroupTest, LimitsNothingWhereThereAreNoGroups) {
  const CgroupLimits limits = read("0::/\n");
  EXPECT_FALSE(limits.cpus || limits.memory_bytes || limits.memory_available_bytes);
}

TEST_F(CgroupTest, ReadsVersionTwo) {
  put("jobs/7/cpu.max", "250000 100000");
  put("jobs/7/memory.max", "1000000");
  put("jobs/7/memory.current", "600000");
  put("jobs/7/memory.stat", "anon 400000\ninactive_file 150000");
  const CgroupLimits limits = read("0::/jobs/7\n");
  EXPECT_DOUBLE_EQ(limits.cpus.value(), 2.5);
  EXPECT_EQ(limits.memory_bytes.value(), 1000000u);
  EXPECT_EQ(limits.memory_available_bytes.value(), 550000u);
}

TEST_F(CgroupTest, ReadsMaxAsNoLimit) {
  put("cpu.max", "max 100000");
  put("memory.max", "max");
  const CgroupLimits limits = read("0::/\n");
  EXPECT_FALSE(limits.cpus || limits.memory_bytes);
}

TEST_F(CgroupTest, TakesTheTightestOfAllAncestors) {
  put("cpu.max", "max 100000");
  put("jobs/cpu.max", "100000 100000");
  put("jobs/7/cpu.max", "300000 100000");
  put("jobs/memory.max", "4096000");
  put("jobs/7/memory.max", "8192000");
  const CgroupLimits limits = read("0::/jobs/7\n");
  EXPECT_DOUBLE_EQ(limits.cpus.value(), 1.0);
  EXPECT_EQ(limits.memory_bytes.value(), 4096000u);
}

TEST_F(CgroupTest, ReadsVersionOne) {
  put("cpu,cpuacct/box/cpu.cfs_quota_us", "150000");
  put("cpu,cpuacct/box/cpu.cfs_period_us", "100000");
  put("memory/box/memory.limit_in_bytes", "2000000");
  put("memory/box/memory.usage_in_bytes", "500000");
  put("memory/box/memory.stat", "total_inactive_file 100000");
  const CgroupLimits limits = read("4:memory:/box\n1:cpu,cpuacct:/box\n");
  EXPECT_DOUBLE_EQ(limits.cpus.value(), 1.5);
  EXPECT_EQ(limits.memory_bytes.value(), 2000000u);
  EXPECT_EQ(limits.memory_available_bytes.value(), 1600000u);
}

TEST_F(CgroupTest, ReadsVersionOnesNoLimit) {
  put("cpu/cpu.cfs_quota_us", "-1");
  put("cpu/cpu.cfs_period_us", "100000");
  put("memory/memory.limit_in_bytes", "9223372036854771712");
  const CgroupLimits limits = read("4:memory:/\n1:cpu:/\n");
  EXPECT_FALSE(limits.cpus || limits.memory_bytes);
}

TEST_F(CgroupTest, FindsTheContainersOwnGroupWhenThePathIsTheHosts) {
  put("memory/memory.limit_in_bytes", "3000000");
  const CgroupLimits limits = read("4:memory:/docker/0123abcd\n");
  EXPECT_EQ(limits.memory_bytes.value(), 3000000u);
}

TEST_F(CgroupTest, IgnoresWhatItCannotRead) {
  put("cpu.max", "lots");
  put("memory.max", "");
  const CgroupLimits limits = read("nonsense\n0::/\n::\n");
  EXPECT_FALSE(limits.cpus || limits.memory_bytes);
}

TEST_F(CgroupTest, CountsNothingFreeWhenUseIsOverTheLimit) {
  put("memory.max", "1000");
  put("memory.current", "5000");
  EXPECT_EQ(read("0::/\n").memory_available_bytes.value(), 0u);
}

}  // namespace
}  // namespace strata
