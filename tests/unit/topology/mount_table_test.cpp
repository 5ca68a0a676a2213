#include "src/topology/mount_table.hpp"

#include <gtest/gtest.h>

namespace strata {
namespace {

constexpr const char* usual =
    "27 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw\n"
    "40 27 0:30 / /tmp rw,nosuid shared:2 master:3 - tmpfs tmpfs rw,size=4k\n"
    "41 27 259:2 / /data rw,noatime - xfs /dev/nvme1n1 rw,attr2\n"
    "42 41 0:31 /sub /data/deep rw - btrfs /dev/nvme2n1p1 rw,subvol=/sub\n";

std::string point_of(const std::string& table, const std::string& path,
                     std::optional<std::uint64_t> id = {}) {
  const auto mounts = parse_mounts(table);
  const Mount* mount = find_mount(mounts, path, id);
  return mount == nullptr ? "none" : mount->mount_point;
}

TEST(MountTable, ReadsAllFieldsWhateverOptionalOnesStandBetween) {
  const auto mounts = parse_mounts(usual);
  ASSERT_EQ(mounts.size(), 4u);
  EXPECT_EQ(mounts[1].id, 40u);
  EXPECT_EQ(mounts[1].device, "0:30");
  EXPECT_EQ(mounts[1].mount_point, "/tmp");
  EXPECT_EQ(mounts[1].options, "rw,nosuid");
  EXPECT_EQ(mounts[1].file_system, "tmpfs");
  EXPECT_EQ(mounts[2].file_system, "xfs");
  EXPECT_EQ(mounts[2].source, "/dev/nvme1n1");
}

TEST(MountTable, TurnsOctalEscapesIntoCharacters) {
  const auto mounts = parse_mounts(
      "50 27 8:1 / /my\\040disk\\134x rw - ext4 /dev/with\\011tab rw\n"
      "51 27 8:2 / /odd\\0 rw - ext4 /dev/sda rw\n");
  ASSERT_EQ(mounts.size(), 2u);
  EXPECT_EQ(mounts[0].mount_point, "/my disk\\x");
  EXPECT_EQ(mounts[0].source, "/dev/with\ttab");
  EXPECT_EQ(mounts[1].mount_point, "/odd\\0") << "half an escape is none";
}

TEST(MountTable, FindsTheLongestMountPointAboveAPath) {
  EXPECT_EQ(point_of(usual, "/data/deep/er"), "/data/deep");
  EXPECT_EQ(point_of(usual, "/data/deep"), "/data/deep");
  EXPECT_EQ(point_of(usual, "/data/deeper"), "/data");
  EXPECT_EQ(point_of(usual, "/database"), "/");
}

TEST(MountTable, TakesTheLastOfTwoMountsOnOnePlace) {
  const auto mounts = parse_mounts(
      "24 1 8:1 / /data rw - ext4 /dev/sda1 rw\n29 24 8:2 / /data rw - xfs /dev/sdb1 rw\n");
  EXPECT_EQ(find_mount(mounts, "/data/x", std::nullopt)->file_system, "xfs");
}

TEST(MountTable, TakesTheMountThatTheKernelNamesBeforeALongerPath) {
  EXPECT_EQ(point_of(usual, "/data/deep/er", 41), "/data");
  EXPECT_EQ(point_of(usual, "/data/deep/er", 99), "/data/deep") << "an id that nobody has";
}

TEST(MountTable, LeavesOutLinesThatAreNone) {
  EXPECT_TRUE(parse_mounts("\nnonsense\n1 2 3:4 / /x rw shared:1 ext4 /dev/x rw\n"
                           "x 2 3:4 / /x rw - ext4 /dev/x rw\n1 2 3:4 / /x rw - ext4\n")
                  .empty());
  EXPECT_EQ(point_of("", "/data"), "none");
}

}  // namespace
}  // namespace strata
