#include "plan/estimate.hpp"

#include <algorithm>
#include <optional>

#include "plan/op_demand.hpp"
#include "plan/spread.hpp"

namespace strata {
namespace {

constexpr auto weight_role = static_cast<std::size_t>(Role::weight);
constexpr auto gradient_role = static_cast<std::size_t>(Role::gradient);

// From home to the engine that works on it, or from there back home.
void bring(Tier home, Tier engine, double bytes, ResourceLoad& load) {
  if (home == engine) return;
  if (home == Tier::nvme) load.nvme_read(bytes);
  if (engine == Tier::device) load.up(bytes);
  if (home == Tier::device) load.down(bytes);
}

void take_back(Tier home, Tier engine, double bytes, ResourceLoad& load) {
  if (home == engine) return;
  if (engine == Tier::device) load.down(bytes);
  if (home == Tier::device) load.up(bytes);
  if (home == Tier::nvme) load.nvme_write(bytes);
}

}  // namespace

Estimator::Estimator(const Program& program, const MachineProfile& machine, std::size_t num_drives)
    : outline_(program),
      rates_(machine, num_drives),
      both_(both_ways(machine)),
      contribution_bytes_per_element_(
          static_cast<double>(dtype_bytes(program.contribution_dtype))) {
  rate_kernels(program);
  rate_updates(program);
}

Estimate Estimator::estimate(const Policy& policy) const {
  const Pieces pieces = place_pieces(outline_, policy);
  const ResourceLoad step = step_load(policy, pieces), state = state_load(pieces);
  ResourceLoad together = step;
  together.add(state, 1);
  const double traffic = together.sum();
  together.spare_drives(held_share(policy));
  return {estimate_memory(outline_, policy, pieces), schedule(policy.update_order, step, state),
          together.bound(both_), traffic};
}

// Of what moves from and to drives, what host slots may hold on to from one use to the next.
double Estimator::held_share(const Policy& policy) const {
  std::int64_t tiles = 1;
  for (const RoleOutline& role : outline_.roles) tiles = std::max(tiles, role.tiles);
  const double slots = policy.state_slots + policy.staging_slots;
  return std::min(1.0, slots / static_cast<double>(tiles));
}

// The step's own work, and the share of the state's that no forward or backward can hide.
double Estimator::schedule(UpdateOrder order, const ResourceLoad& step,
                           const ResourceLoad& state) const {
  double window = 0;
  if (order != UpdateOrder::after_backward) window += outline_.first_forward;
  if (order == UpdateOrder::during_backward) window += outline_.last_backward;
  ResourceLoad together(rates_);
  together.add(step, window);
  together.add(state, 1);
  return step.bound(both_) * (1 - window) + together.bound(both_);
}

ResourceLoad Estimator::step_load(const Policy& policy, const Pieces& pieces) const {
  ResourceLoad load(rates_);
  load.compute(compute_seconds_);
  add_weights(policy, pieces, load);
  add_gradients(pieces, load);
  add_boundaries(policy, load);
  return load;
}

void Estimator::add_weights(const Policy& policy, const Pieces& pieces, ResourceLoad& load) const {
  const std::vector<int>& fetches = outline_.fetches(policy.weight_slots);
  const bool all_resident = policy.fractions[weight_role].device >= 1;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const UpdatePiece& piece = outline_.pieces[i];
    const double bytes = piece.bytes[weight_role] * fetches[static_cast<std::size_t>(piece.block)];
    const Tier home = pieces[i].tier[weight_role];
    if (outline_.sliced[weight_role]) load.gather(bytes * (outline_.world - 1));
    if (home == Tier::device && !all_resident) load.device_copy(bytes);
    bring(home, Tier::device, bytes, load);
  }
}

void Estimator::add_gradients(const Pieces& pieces, ResourceLoad& load) const {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const UpdatePiece& piece = outline_.pieces[i];
    const BlockOutline& block = outline_.blocks[static_cast<std::size_t>(piece.block)];
    if (block.contributions == 0) continue;
    const Tier home = pieces[i].tier[gradient_role];
    const double contributed = piece.elements * contribution_bytes_per_element_;
    const double sum = piece.bytes[gradient_role];
    if (outline_.world > 1) load.reduce(contributed * block.contributions * (outline_.world - 1));
    if (outline_.world > 1 && !outline_.sliced[gradient_role])
      load.gather(contributed * block.contributions * (outline_.world - 1));
    if (block.stored_as_contributed)
      home == Tier::device ? load.device_copy(sum) : take_back(home, Tier::device, sum, load);
    else
      add_sum(home, contributed, sum, block.contributions, load);
    home == Tier::device ? load.device_pass(sum) : load.host_pass(sum);  // squares
  }
}

void Estimator::add_sum(Tier home, double contributed, double sum, int contributions,
                        ResourceLoad& load) const {
  // The first contribution makes the sum, the others read it as well.
  const double pass = contributed * contributions + sum * (2 * contributions - 1);
  if (home == Tier::device) return load.device_pass(pass);
  load.down(contributed * contributions);
  load.host_pass(pass);
  if (home != Tier::nvme) return;
  load.nvme_read(sum * (contributions - 1));
  load.nvme_write(sum * contributions);
}

void Estimator::add_boundaries(const Policy& policy, ResourceLoad& load) const {
  const BoundaryDemand& demand = outline_.boundary_demand(policy);
  load.down(demand.down);
  load.up(demand.up);
  load.nvme_write(demand.nvme_written);
  load.nvme_read(demand.nvme_read);
}

ResourceLoad Estimator::state_load(const Pieces& pieces) const {
  ResourceLoad load(rates_);
  for (std::size_t i = 0; i < pieces.size(); ++i) add_update(outline_.pieces[i], pieces[i], load);
  return load;
}

// Of what is replicated, an update touches this rank's part; the others come by a gather.
void Estimator::add_update(const UpdatePiece& piece, const PlacedPiece& placed,
                           ResourceLoad& load) const {
  const auto own = [&](std::size_t role) {
    return piece.bytes[role] / (outline_.sliced[role] ? 1 : outline_.world);
  };
  double pass = own(gradient_role) + own(weight_role);
  bring(placed.tier[gradient_role], placed.engine, own(gradient_role), load);
  take_back(placed.tier[weight_role], placed.engine, piece.bytes[weight_role], load);
  if (!outline_.sliced[weight_role]) load.gather(piece.bytes[weight_role] - own(weight_role));
  for (std::size_t role = 0; role < num_state_roles; ++role) {
    if (!outline_.updated[role]) continue;
    bring(placed.tier[role], placed.engine, own(role), load);
    pass += own(role);
    if (role == weight_role) continue;
    take_back(placed.tier[role], placed.engine, own(role), load);
    pass += own(role);
  }
  if (placed.engine == Tier::device) return load.device_pass(pass);
  load.host_update(pass, piece.elements * update_seconds_per_element_);
}

// --- Rates of the machine

void Estimator::rate_kernels(const Program& program) {
  for (std::size_t work = 0; work < program.works.size(); ++work)
    compute_seconds_ += outline_.runs_of_work[work] * rates_.seconds(program.works[work]);
}

void Estimator::rate_updates(const Program& program) {
  for (const Segment& segment : program.segments) {
    if (segment.kind != SegmentKind::update) continue;
    const auto dtype_of = [&](Role role) {
      const Use* use = program.use_of(segment, role);
      return use == nullptr ? DType::u8 : program.shard(use->shard).dtype;
    };
    const double rate = rates_.update(
        update_layout(dtype_of(Role::gradient), dtype_of(Role::master), dtype_of(Role::moment1)));
    update_seconds_per_element_ = rate > 0 ? 1 / rate : 0;
    return;
  }
}

// --- Where pieces live

namespace {

std::optional<Tier> only_tier(const TierFractions& f) {
  if (f.device >= 1) return Tier::device;
  if (f.host >= 1) return Tier::host;
  return f.nvme >= 1 ? std::optional(Tier::nvme) : std::nullopt;
}

}  // namespace

std::vector<PlacedPiece> place_pieces(const StepOutline& outline, const Policy& policy) {
  std::vector<PlacedPiece> placed(outline.pieces.size());
  for (std::size_t role = 0; role < num_state_roles; ++role) {
    const TierFractions& f = policy.fractions[role];
    if (const auto tier = only_tier(f)) {
      for (PlacedPiece& piece : placed) piece.tier[role] = *tier;
      continue;
    }
    Spread spread({f.device, f.host, f.nvme});
    for (int piece : outline.order[role]) {
      const auto i = static_cast<std::size_t>(piece);
      placed[i].tier[role] =
          static_cast<Tier>(spread.next(static_cast<std::uint64_t>(outline.pieces[i].bytes[role])));
    }
  }
  Spread engines({1 - policy.streamed_updates, policy.streamed_updates, 0});
  for (std::size_t i = 0; i < placed.size(); ++i) {
    bool resident = true;
    double bytes = 0;
    for (std::size_t role = 0; role < num_state_roles; ++role) {
      if (!outline.updated[role] || outline.pieces[i].bytes[role] == 0) continue;
      resident = resident && placed[i].tier[role] == Tier::device;
      bytes += outline.pieces[i].bytes[role];
    }
    placed[i].engine = resident || engines.next(static_cast<std::uint64_t>(bytes)) == 1
                           ? Tier::device
                           : Tier::host;
  }
  return placed;
}

}  // namespace strata
