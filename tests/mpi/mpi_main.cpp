// Runs the tests in every process of an MPI job; process 0 tells what it does, the others what
// fails.

#include <gtest/gtest.h>

#include <iostream>

#include "mpi_job_of_test.hpp"

namespace strata::testing {
namespace {

class FailureTeller final : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::cout << "process " << MpiJobOfTest::launch().process << ": "
              << (test != nullptr ? test->name() : "no test") << ": " << result.file_name() << ":"
              << result.line_number() << ": " << result.message() << std::endl;
  }
};

void tell_failures_only() {
  ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailureTeller);
}

}  // namespace
}  // namespace strata::testing

int main(int argc, char** argv) {
  using strata::testing::MpiJobOfTest;
  ::testing::InitGoogleTest(&argc, argv);
  MpiJobOfTest::start();
  if (MpiJobOfTest::launch().process != 0) strata::testing::tell_failures_only();
  const int status = RUN_ALL_TESTS();
  MpiJobOfTest::end();
  return status;
}
