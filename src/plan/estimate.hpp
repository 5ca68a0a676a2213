#pragma once
// What a placement would need of each tier and how long a step would take, judged from an outline
// of the program: some microseconds instead of the planner's and simulator's tenths of a second.
// Memory is the Layout's to a few percent; time is a bound (the busiest resource, and the state's
// work that no compute hides) that ranks candidates. Who must know plans and simulates.

#include <array>
#include <cstdint>

#include "resource_load.hpp"
#include "step_outline.hpp"

namespace strata {

constexpr auto weight_role = static_cast<std::size_t>(Role::weight);
constexpr auto gradient_role = static_cast<std::size_t>(Role::gradient);

struct Estimate {
  std::array<double, num_tiers> tier_bytes{};
  double seconds = 0;  // near to what a step takes: candidates are ranked by it
  double least_seconds =
      0;               // all at once; but for sums that stay in host slots, no step takes less
  double traffic = 0;  // seconds of all resources together: tells placements of equal time apart
};

// Where each piece of the state lives, role by role, and which engine updates it.
struct PlacedPiece {
  std::array<Tier, num_state_roles> tier{};
  Tier engine = Tier::host;
};
struct PlacedState {
  std::vector<PlacedPiece> pieces;
  // Updates find the sums that live on NVMe in the slots that backward had them in.
  bool finds_sums = false;
};
PlacedState place_state(const StepOutline& outline, const Policy& policy);

// Homes and slots in bytes, as Layout would cut them.
std::array<double, num_tiers> estimate_memory(const StepOutline& outline, const Policy& policy,
                                              const PlacedState& placed);

// Of host memory, what saving in the background takes beside what training does: at least that.
double saving_memory(const StepOutline& outline, const std::vector<PlacedPiece>& pieces);

class Estimator {
 public:
  // `program` may go when the constructor is done.
  Estimator(const Program& program, const MachineProfile& machine, std::size_t num_drives);

  Estimate estimate(const Policy& policy) const;
  const StepOutline& outline() const { return outline_; }
  double compute_seconds() const { return compute_seconds_; }

 private:
  using Pieces = std::vector<PlacedPiece>;
  void rate_kernels(const Program& program);
  void rate_updates(const Program& program);
  ResourceLoad step_load(const Policy& policy, const Pieces& pieces) const;
  ResourceLoad state_load(const Policy& policy, const PlacedState& placed) const;
  void add_weights(const Policy& policy, const Pieces& pieces, ResourceLoad& load) const;
  void add_gradients(const Policy& policy, const Pieces& pieces, ResourceLoad& load) const;
  void add_sum(Tier home, double contributed, double sum, int contributions, int stores,
               ResourceLoad& load) const;
  std::vector<double> sums_on_nvme(const Pieces& pieces) const;
  void add_boundaries(const Policy& policy, ResourceLoad& load) const;
  void add_update(const UpdatePiece& piece, const PlacedPiece& placed, bool has_sum,
                  ResourceLoad& load) const;
  void add_sharing(const Policy& policy, const Pieces& pieces, ResourceLoad& load) const;
  double held_share(const Policy& policy) const;
  double schedule(UpdateOrder order, const ResourceLoad& step, const ResourceLoad& state) const;

  StepOutline outline_;
  RankRates rates_;
  BothWays both_;
  double compute_seconds_ = 0;
  double update_seconds_per_element_ = 0;  // by the host; 0: bound by memory
  double contribution_bytes_per_element_ = 0;
};

}  // namespace strata
