#include "io/common/file_table.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <set>
#include <vector>

#include "strata/core/error.hpp"
#include "unit/io/plain_open_file.hpp"

namespace strata::testing {
namespace {

std::shared_ptr<OpenFile> make_file() { return std::make_shared<PlainOpenFile>("plain", 1); }

TEST(FileTable, FindsWhatWasAddedAndNothingElse) {
  FileTable table(0);
  const auto one = make_file(), two = make_file();
  const FileId first = table.add(one), second = table.add(two);
  EXPECT_EQ(*table.find(first), one);
  EXPECT_EQ(*table.find(second), two);
  for (const std::int32_t value : {-1, -8193, 12345, 2, 1 << 26}) {
    EXPECT_EQ(table.find(FileId{value}), nullptr) << value;
  }
}

TEST(FileTable, GivesAPlaceAgainUnderAnotherId) {
  FileTable table(0);
  std::set<FileId> ids;
  for (int round = 0; round < 8192; ++round) {
    const FileId id = table.add(make_file());
    EXPECT_TRUE(ids.insert(id).second);
    table.remove(id);
    EXPECT_EQ(table.find(id), nullptr);
  }
}

TEST(FileTable, SaysWhichQueueAnIdIsFrom) {
  for (int queue = 0; queue < FileTable::queues_max; ++queue) {
    FileTable table(queue);
    for (int round = 0; round < 3; ++round) {
      const FileId id = table.add(make_file());
      EXPECT_TRUE(id.valid());
      EXPECT_EQ(FileTable::queue_of(id), queue);
      EXPECT_NE(table.find(id), nullptr);
      table.remove(id);
    }
    EXPECT_EQ(FileTable(queue == 0 ? 1 : 0).find(table.add(make_file())), nullptr);
  }
  EXPECT_EQ(FileTable::queue_of(FileId{}), 0);
}

TEST(FileTable, RefusesMoreFilesThanItHasPlacesFor) {
  FileTable table(3);
  std::vector<FileId> ids;
  for (int index = 0; index < FileTable::files_max; ++index) ids.push_back(table.add(make_file()));
  try {
    table.add(make_file());
    FAIL() << "added one too many";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.error_number(), EMFILE);
  }
  table.remove(ids[77]);
  EXPECT_NE(table.find(table.add(make_file())), nullptr);
}

}  // namespace
}  // namespace strata::testing
