#include "strata/device/cuda_advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace strata {
namespace {

using ::testing::HasSubstr;

std::string advice(int error_number) { return std::string(cuda_advice(error_number)); }

TEST(CudaAdvice, SaysWhoMayHoldTheDevice) {
  EXPECT_THAT(advice(2), HasSubstr("offload.gpu_limit"));
  EXPECT_THAT(advice(46), HasSubstr("another process"));
}

TEST(CudaAdvice, TellsDriversThatAreOldFromThoseThatDoNotFit) {
  EXPECT_THAT(advice(35), HasSubstr("older than this build's CUDA"));
  EXPECT_THAT(advice(803), HasSubstr("of different versions"));
  EXPECT_THAT(advice(804), HasSubstr("LD_LIBRARY_PATH"));
}

TEST(CudaAdvice, NamesWhatAMachineOrAContainerLacks) {
  EXPECT_THAT(advice(802), HasSubstr("fabricmanager"));
  EXPECT_THAT(advice(100), HasSubstr("--gpus all"));
}

TEST(CudaAdvice, SaysOfErrorsOfEarlierWorkThatTheyAre) {
  for (const int late : {700, 710, 714, 719, 721}) {
    EXPECT_TRUE(is_late_cuda_error(late));
    EXPECT_THAT(advice(late), HasSubstr("given to the device earlier"));
  }
  for (const int own : {1, 2, 701, 704, 720}) EXPECT_FALSE(is_late_cuda_error(own));
}

TEST(CudaAdvice, IsNothingForWhatNobodyKnows) { EXPECT_EQ(advice(1), ""); }

}  // namespace
}  // namespace strata
