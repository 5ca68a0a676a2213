#pragma once
// The refusal of a plan for one of its tiers.

#include <string>

#include "strata/core/error.hpp"
#include "strata/plan/plan.hpp"

namespace strata {

// A tier is smaller than what a plan needs of it.
class TierOverflow : public OutOfMemory {
 public:
  // Whose limit it is: a config's can be raised.
  enum class Limit : std::uint8_t { config, machine };

  // `advice`: what can be done to fit, but for raising the limit.
  TierOverflow(Tier tier, const std::string& where, std::uint64_t wanted_bytes,
               std::uint64_t free_bytes, const std::string& facts, const std::string& advice,
               Limit limit);
  Tier tier() const { return tier_; }
  std::uint64_t missing_bytes() const { return wanted_bytes() - free_bytes(); }
  // With another limit blamed, and more told of it.
  TierOverflow with(Limit limit, const std::string& fact = "") const;

 private:
  Tier tier_;
  std::string facts_, advice_;
};

}  // namespace strata
