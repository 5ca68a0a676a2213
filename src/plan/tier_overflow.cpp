#include "strata/plan/tier_overflow.hpp"

#include <fmt/format.h>

namespace strata {
namespace {

std::string raise(Tier tier, TierOverflow::Limit limit) {
  if (limit == TierOverflow::Limit::machine || tier == Tier::nvme) return "";
  return fmt::format("raise offload.{}_limit, ", tier_name(tier));
}

}  // namespace

TierOverflow::TierOverflow(Tier tier, const std::string& where, std::uint64_t wanted_bytes,
                           std::uint64_t free_bytes, const std::string& facts,
                           const std::string& advice, Limit limit)
    : OutOfMemory(where, wanted_bytes, free_bytes,
                  fmt::format("{}\nto fit: {}{}", facts, raise(tier, limit), advice)),
      tier_(tier),
      facts_(facts),
      advice_(advice) {}

TierOverflow TierOverflow::with(Limit limit, const std::string& fact) const {
  const std::string facts = fact.empty() ? facts_ : facts_ + "\n" + fact;
  return {tier_, where(), wanted_bytes(), free_bytes(), facts, advice_, limit};
}

}  // namespace strata
