#include "strata/topology/topology.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <set>

#include "strata/core/error.hpp"

namespace strata {
namespace {

TEST(Topology, StatesCoresAndMemoryThatCanBeTrue) {
  const Topology topology = read_topology();
  ASSERT_FALSE(topology.nodes.empty());
  EXPECT_GE(topology.usable_cores, 1);
  EXPECT_GT(topology.memory_bytes, 0u);
  EXPECT_GT(topology.available_memory_bytes, 0u);
  EXPECT_LE(topology.available_memory_bytes, topology.memory_bytes);
}

TEST(Topology, CountsEachUsableCoreOnce) {
  const Topology topology = read_topology();
  std::set<int> cores;
  std::size_t count = 0;
  for (const NumaNode& node : topology.nodes) {
    cores.insert(node.cores.begin(), node.cores.end());
    count += node.cores.size();
  }
  EXPECT_EQ(cores.size(), count);
  EXPECT_GE(cores.size(), static_cast<std::size_t>(topology.usable_cores));
}

TEST(Topology, HonoursTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  CPU_SET(core, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  const Topology topology = read_topology();
  ASSERT_EQ(::sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(topology.usable_cores, 1);
}

TEST(FileSystem, StatesTypeAndSpaceOfADirectory) {
  const FileSystemInfo info = read_file_system(::testing::TempDir());
  EXPECT_FALSE(info.type.empty());
  EXPECT_GT(info.total_bytes, 0u);
  EXPECT_LE(info.free_bytes, info.total_bytes);
}

TEST(FileSystem, KnowsMemoryWhenItSeesIt) {
  FileSystemInfo info;
  try {
    info = read_file_system("/dev/shm");
  } catch (const SystemError& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_EQ(info.in_memory, info.type == "tmpfs" || info.type == "ramfs");
}

TEST(FileSystem, ThrowsForAMissingDirectoryWithItsName) {
  try {
    read_file_system("/no/such/directory");
    FAIL() << "read it";
  } catch (const SystemError& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/directory"), std::string::npos);
  }
}

}  // namespace
}  // namespace strata
