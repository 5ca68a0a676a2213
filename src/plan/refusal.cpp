#include "plan/refusal.hpp"

#include <fmt/format.h>

#include <string>

#include "strata/core/bytes.hpp"
#include "strata/plan/tier_overflow.hpp"

namespace strata {
namespace {

std::uint64_t whole(double bytes) { return static_cast<std::uint64_t>(bytes); }

std::string placement(const Policy& policy) {
  std::string text;
  for (Role role : {Role::weight, Role::gradient, Role::master, Role::moment1, Role::moment2,
                    Role::activation}) {
    const TierFractions& f = policy.fractions[static_cast<std::size_t>(role)];
    text += fmt::format("{}{} {:.3g}/{:.3g}/{:.3g}", text.empty() ? "" : ", ", role_name(role),
                        f.device, f.host, f.nvme);
  }
  return text;
}

std::string remedy(const Fit& fit) {
  const double memory = fit.missing(Tier::device) + fit.missing(Tier::host);
  std::string text;
  if (memory > 0)
    text = fmt::format("{} more of gpu and cpu memory together, ", format_bytes(whole(memory)));
  if (fit.missing(Tier::nvme) > 0)
    text += fmt::format("{} more space below offload.nvme_paths, or another path, ",
                        format_bytes(whole(fit.missing(Tier::nvme))));
  if (fit.limit[static_cast<std::size_t>(Tier::nvme)] == 0)
    text += "drives named in offload.nvme_paths, ";
  return text + "optimizer_master: split, smaller optimizer_moments, or a smaller micro-batch";
}

}  // namespace

void refuse_search(const ProgramVariant& variant, const Policy& policy, const Fit& fit) {
  const Tier tier = fit.tightest();
  throw TierOverflow(
      tier, fmt::format("no placement fits: tier {}", tier_name(tier)),
      whole(fit.need[static_cast<std::size_t>(tier)]),
      whole(fit.limit[static_cast<std::size_t>(tier)]),
      fmt::format("the nearest needs {}\nit has (gpu/cpu/nvme) {}; accumulation group {}, {} "
                  "layers kept",
                  format_fit(fit), placement(policy), variant.accumulation_group,
                  variant.kept_layers),
      remedy(fit), TierOverflow::Limit::machine);
}

}  // namespace strata
