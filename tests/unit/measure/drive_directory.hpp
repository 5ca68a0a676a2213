#pragma once
// A directory of temporary files where drives can be measured, or the reason why they cannot.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "contract/io/io_testing.hpp"
#include "strata/core/bytes.hpp"
#include "strata/topology/topology.hpp"

namespace strata {

// "" where the directory can be measured, else why not.
inline std::string why_no_drive(const std::string& directory) {
  if (read_file_system(directory).in_memory) return directory + " is in memory";
  const std::string file = directory + "/probe";
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_DIRECT, 0600);
  std::filesystem::remove(file);
  if (descriptor < 0) return "no O_DIRECT in " + directory;
  ::close(descriptor);
  if (read_file_system(directory).free_bytes < 1 * GiB) return directory + " is nearly full";
  return "";
}

class OnADrive : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = why_no_drive(directory_.path());
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  testing::TempDirectory directory_;
};

}  // namespace strata
