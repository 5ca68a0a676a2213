#include "strata/core/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "strata/core/tensor_view.hpp"

namespace strata {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(OutOfMemory, SaysWhereHowMuchAndWhatToDo) {
  const OutOfMemory error("tier cpu", 3 << 20, 1 << 20, "move more to nvme");
  const std::string text = error.what();
  EXPECT_TRUE(contains(text, "tier cpu needs 3.00 MiB (3145728 bytes)")) << text;
  EXPECT_TRUE(contains(text, "1.00 MiB (1048576 bytes) available")) << text;
  EXPECT_TRUE(contains(text, "move more to nvme")) << text;
  EXPECT_EQ(error.wanted_bytes(), 3u << 20);
  EXPECT_EQ(error.free_bytes(), 1u << 20);
}

TEST(Check, ThrowsWithActionSubjectAndReason) {
  try {
    errno = ENOSPC;
    check(-1, "write", "some/file");
    FAIL() << "no error";
  } catch (const SystemError& error) {
    EXPECT_TRUE(contains(error.what(), "cannot write some/file: No space left on device"))
        << error.what();
    EXPECT_EQ(error.error_number(), ENOSPC);
  }
  EXPECT_EQ(check(3, "read", "x"), 3);
}

TEST(Ensure, StopsTheProgramAndNamesThePlace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(ensure(false), "broken invariant at .*error_test.cpp");
}

TEST(TensorView, SlicesAndReshapesWithoutCopying) {
  float data[12] = {};
  const TensorView view{data, DType::f32, {3, 4}};
  EXPECT_EQ(view.count(), 12);
  EXPECT_EQ(view.bytes(), 48);
  EXPECT_EQ(view.slice(4, {2, 4}).data, data + 4);
  EXPECT_EQ(view.reshaped({2, 6}).dim(1), 6);
  EXPECT_EQ(to_string(view.shape), "[3, 4]");
}

TEST(TensorView, StopsTheProgramOnASliceBeyondItsEnd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  float data[4] = {};
  const TensorView view{data, DType::f32, {4}};
  EXPECT_DEATH(view.slice(2, {3}), "broken invariant");
  EXPECT_DEATH(view.reshaped({5}), "broken invariant");
}

}  // namespace
}  // namespace strata
