#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "src/measure/doctor_findings.hpp"
#include "unit/measure/healthy_machine.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

TEST(DoctorOfCuda, ShowsVersionsAndDevices) {
  const Finding finding = find_cuda(healthy_cuda());
  EXPECT_EQ(finding.health, Health::ok) << finding.advice;
  EXPECT_EQ(finding.facts,
            "built for 13.0; driver's 13.0; device 0: NVIDIA H100 80GB HBM3 at 0000:41:00.0, "
            "compute 9.0, 80.0 GiB, 132 multiprocessors, node 0");
}

TEST(DoctorOfCuda, ShowsWhatADeviceReachesAndOverWhat) {
  CudaInventory cuda = healthy_cuda();
  cuda.devices[0].peers = {{1, true}, {2, false}};
  EXPECT_THAT(find_cuda(cuda).facts, HasSubstr(", reaches 1 over NVLink, 2 over PCIe"));
}

TEST(DoctorOfCuda, SaysHowARunUsesAllDevices) {
  CudaInventory cuda = healthy_cuda();
  EXPECT_THAT(find_cuda(cuda).facts, ::testing::Not(HasSubstr("ranks:")));
  cuda.devices.resize(8, cuda.devices.front());
  EXPECT_THAT(find_cuda(cuda).facts, HasSubstr("a run uses one for each rank: ranks: 8 uses all"));
}

TEST(DoctorOfCuda, SaysWhyThereIsNoDevice) {
  CudaInventory cuda;
  cuda.runtime_version = "13.0";
  cuda.failure = "cudaGetDeviceCount: cudaErrorInsufficientDriver (35): too old";
  const Finding finding = find_cuda(cuda);
  EXPECT_EQ(finding.health, Health::ok) << "the line of the GPUs judges that";
  EXPECT_THAT(finding.facts, HasSubstr("driver's none; no device: cudaGetDeviceCount"));
}

TEST(DoctorOfCuda, RefusesDevicesThatTheBuildHasNoCodeFor) {
  CudaInventory cuda = healthy_cuda();
  cuda.devices[0].compute_major = 7;
  cuda.devices[0].compute_minor = 5;
  const Finding finding = find_cuda(cuda);
  EXPECT_EQ(finding.health, Health::broken);
  EXPECT_THAT(finding.advice, HasSubstr("CUDA_VISIBLE_DEVICES"));
}

TEST(DoctorOfCuda, WarnsOfOneCopyEngine) {
  CudaInventory cuda = healthy_cuda();
  cuda.devices[0].num_copy_engines = 1;
  const Finding finding = find_cuda(cuda);
  EXPECT_EQ(finding.health, Health::degraded);
  EXPECT_THAT(finding.advice, HasSubstr("take turns"));
}

TEST(DoctorOfCuda, HasALineInBuildsWithCudaAlone) {
  const auto has_line = [](const DoctorFacts& facts) {
    return std::ranges::any_of(diagnose(facts), [](const Finding& f) { return f.topic == "CUDA"; });
  };
  DoctorFacts facts = healthy_machine();
  EXPECT_TRUE(has_line(facts));
  facts.cuda.is_built = false;
  EXPECT_FALSE(has_line(facts));
}

}  // namespace
}  // namespace strata
