// Runs the tests on the machine's GPUs; where there is none, skips each, and says why. With
// --apart, for compute-sanitizer, each operand of a kernel is an allocation of its own.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "gpu/gpu_rig.hpp"

namespace {

// The device goes while the driver is still there.
class GpuEnvironment final : public ::testing::Environment {
 public:
  void TearDown() override { strata::testing::give_back_gpu_rig(); }
};

class SkipAll final : public ::testing::EmptyTestEventListener {
 public:
  explicit SkipAll(std::string reason) : reason_(std::move(reason)) {}
  void OnTestStart(const ::testing::TestInfo&) override { GTEST_SKIP() << reason_; }

 private:
  std::string reason_;
};

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == "--apart")
    strata::testing::set_gpu_operands(strata::testing::Operands::apart);
  const std::string missing = strata::testing::missing_gpu();
  if (!missing.empty()) {
    std::printf("cuda_test: every test is skipped: %s\n", missing.c_str());
    ::testing::UnitTest::GetInstance()->listeners().Append(new SkipAll(missing));
  }
  ::testing::AddGlobalTestEnvironment(new GpuEnvironment);
  return RUN_ALL_TESTS();
}
