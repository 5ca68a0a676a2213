#include "strata/core/shared_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>

#include "strata/core/error.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SharedLibrary, SaysWhatItIsForWhatItLookedForAndWhatToDo) {
  const std::array<std::string, 2> names = {"libof-nowhere.so.13", "libof-nowhere.so.12"};
  const std::array<std::string, 1> folders = {"/nowhere"};
  EXPECT_THAT(
      message_of([&] { SharedLibrary("Nowhere, which is needed", names, folders, "install it"); }),
      AllOf(HasSubstr("Nowhere, which is needed cannot be loaded: libof-nowhere.so.13: cannot"),
            HasSubstr("/nowhere/libof-nowhere.so.13: cannot open shared object file"),
            HasSubstr("; libof-nowhere.so.12: cannot"), HasSubstr("; install it")));
}

TEST(SharedLibrary, IsTheFirstOfItsNamesThatThereIs) {
  const std::array<std::string, 2> names = {"libof-nowhere.so.1", "libm.so.6"};
  const SharedLibrary library("mathematics", names, {}, "install it");
  EXPECT_EQ(library.path(), "libm.so.6");
  double (*power)(double, double) = nullptr;
  library.find("pow", power);
  EXPECT_EQ(power(2, 10), 1024);
}

TEST(SharedLibrary, SaysWhichFunctionItLacksAndWhatToDo) {
  const std::array<std::string, 1> names = {"libm.so.6"};
  const SharedLibrary library("mathematics", names, {}, "a newer one is needed");
  EXPECT_THAT(
      message_of([&] { library.symbol("no_such_function"); }),
      AllOf(HasSubstr("libm.so.6 lacks no_such_function: "), HasSubstr("; a newer one is needed")));
}

}  // namespace
}  // namespace strata
