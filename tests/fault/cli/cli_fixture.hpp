#pragma once
// What the tests of the built binary share: a folder of their own, a tiny model, its token shards,
// and a config whose optimizer state lives on NVMe.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "fault/cli/process.hpp"

namespace strata {

// What the program ends with.
constexpr int exit_failure = 1, exit_usage = 2, exit_drive_stalled = 3;

class CliTest : public ::testing::Test {
 protected:
  CliTest();
  ~CliTest() override;

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  std::string text(const std::string& name) const;
  void write(const std::string& name, const std::string& bytes) const;
  // But for what tells of the run that owns the folder, or was killed when it did.
  std::vector<std::string> names_in(const std::string& folder) const;
  // Replaces one byte in the middle of a file by another.
  void damage(const std::string& name) const;

  // The command line of the binary, and running it to its end.
  static std::vector<std::string> command(std::vector<std::string> arguments);
  ProcessResult run(std::vector<std::string> arguments, const ProcessOptions& options = {}) const;
  // "train CONFIG overrides..." over the files of make_inputs().
  std::vector<std::string> train(const std::vector<std::string>& overrides = {}) const;
  // A shell script in which the user may mount, seen by nobody else; "$@" is `arguments`. Check
  // can_mount() first.
  ProcessResult run_with_mounts(const std::string& script,
                                const std::vector<std::string>& arguments) const;
  bool can_mount() const;
  // Whether path("nvme") can serve as a drive: it cannot where temporary files live in memory.
  bool has_drive() const;

  // model/, text.txt, data/{train,heldout}.tok, nvme/ and run.yaml.
  void make_inputs() const;

 private:
  std::filesystem::path folder_;
};

// Losses, norms and learning rates by step in a metrics.jsonl: bytes of their numbers as they were
// logged.
using LoggedSteps = std::map<std::int64_t, std::string>;
LoggedSteps logged_steps(const std::string& metrics);

// A test with those inputs, on a drive.
class CliOnDrive : public CliTest {
 protected:
  void SetUp() override;
};

}  // namespace strata
