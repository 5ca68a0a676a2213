#pragma once
// Empty directories on the disks of an engine, as offload.nvme_paths names them. What uses them has
// to leave them empty.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "strata/io/io_engine.hpp"

namespace strata::testing {

class Drives {
 public:
  Drives(IoEngine& engine, std::size_t count) : files_(engine.file_system()) {
    static std::atomic<int> made{0};
    const std::string folder = ::testing::TempDir() + "strata-drive-" + std::to_string(::getpid()) +
                               "-" + std::to_string(made++) + "-";
    for (std::size_t i = 0; i < count; ++i) {
      paths_.push_back(folder + std::to_string(i));
      files_.make_directory(paths_.back());
    }
  }
  ~Drives() {
    for (const std::string& path : paths_) {
      try {
        files_.remove(path);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "a drive is not left empty: " << error.what();
      }
    }
  }
  Drives(const Drives&) = delete;
  Drives& operator=(const Drives&) = delete;

  const std::vector<std::string>& paths() const { return paths_; }

 private:
  FileSystem& files_;
  std::vector<std::string> paths_;
};

}  // namespace strata::testing
