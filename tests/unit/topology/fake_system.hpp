#pragma once
// A made-up /proc and /sys in a temporary folder.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "src/topology/system_files.hpp"

namespace strata {

class FakeSystem {
 public:
  FakeSystem() {
    std::string name = ::testing::TempDir() + "/strata-system-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    root_ = std::filesystem::canonical(name);
  }
  ~FakeSystem() { std::filesystem::remove_all(root_); }
  FakeSystem(const FakeSystem&) = delete;
  FakeSystem& operator=(const FakeSystem&) = delete;

  SystemRoots roots() const { return {root_ / "proc", root_ / "sys"}; }

  // "sys/block/x/queue/rotational"
  void put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }
  // Both below the root.
  void link(const std::string& name, const std::string& target) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::filesystem::create_directories(root_ / target);
    std::filesystem::create_symlink(root_ / target, root_ / name);
  }
  void mounts(const std::string& lines) const { put("proc/self/mountinfo", lines); }

 private:
  std::filesystem::path root_;
};

}  // namespace strata
