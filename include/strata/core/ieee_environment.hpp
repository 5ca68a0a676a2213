#pragma once
// Gives the calling thread the default floating-point environment while alive: round to nearest,
// denormals kept. Libraries of the host program may have set another, and bits are a contract.
// Thread contract: ended by the thread that made it.

#include <cfenv>

namespace strata {

class IeeeEnvironment {
 public:
  IeeeEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~IeeeEnvironment() { std::fesetenv(&saved_); }
  IeeeEnvironment(const IeeeEnvironment&) = delete;
  IeeeEnvironment& operator=(const IeeeEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace strata
