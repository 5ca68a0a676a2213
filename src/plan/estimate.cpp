#include "plan/estimate.hpp"

#include <algorithm>
#include <optional>

#include "plan/op_demand.hpp"
#include "plan/spread.hpp"

namespace strata {
namespace {

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
  const PlacedState placed = place_state(outline_, policy);
  const ResourceLoad step = step_load(policy, placed.pieces), state = state_load(policy, placed);
  ResourceLoad together = step;
  together.add(state, 1);
  const double traffic = together.sum();
  together.spare_drives(held_share(policy));
  return {estimate_memory(outline_, policy, placed), schedule(policy.update_order, step, state),
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
  add_gradients(policy, pieces, load);
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

void Estimator::add_gradients(const Policy& policy, const Pieces& pieces,
                              ResourceLoad& load) const {
  const std::vector<double> on_nvme = sums_on_nvme(pieces);
  const double staged =
      static_cast<double>(outline_.roles[gradient_role].tile) * policy.staging_slots;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const UpdatePiece& piece = outline_.pieces[i];
    const BlockOutline& block = outline_.blocks[static_cast<std::size_t>(piece.block)];
    if (block.contributions == 0) continue;
    const Tier home = pieces[i].tier[gradient_role];
    const bool is_sliced = outline_.sliced[gradient_role];
    const double own = piece.elements * contribution_bytes_per_element_;
    const double others = piece.others_elements * contribution_bytes_per_element_;
    const double sum = piece.bytes[gradient_role];
    const bool stays_staged = on_nvme[static_cast<std::size_t>(piece.block)] <= staged;
    const int stores = block.contributions - (stays_staged ? block.continued : 0);
    load.reduce(others * block.contributions);
    if (!is_sliced) load.gather(others * block.contributions);
    if (block.stored_as_contributed)
      home == Tier::device ? load.device_copy(sum) : take_back(home, Tier::device, sum, load);
    else
      add_sum(home, is_sliced ? own : own + others, sum, block.contributions, stores, load);
    const double squared = is_sliced ? sum : sum * own / (own + others);
    home == Tier::device ? load.device_pass(squared) : load.host_pass(squared);
  }
}

// By block, in bytes.
std::vector<double> Estimator::sums_on_nvme(const Pieces& pieces) const {
  std::vector<double> bytes(outline_.blocks.size(), 0);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const UpdatePiece& piece = outline_.pieces[i];
    if (pieces[i].tier[gradient_role] == Tier::nvme)
      bytes[static_cast<std::size_t>(piece.block)] += piece.bytes[gradient_role];
  }
  return bytes;
}

void Estimator::add_sum(Tier home, double contributed, double sum, int contributions, int stores,
                        ResourceLoad& load) const {
  // The first contribution makes the sum, the others read it as well.
  const double pass = contributed * contributions + sum * (2 * contributions - 1);
  if (home == Tier::device) return load.device_pass(pass);
  load.down(contributed * contributions);
  load.host_pass(pass);
  if (home != Tier::nvme) return;
  load.nvme_read(sum * (stores - 1));
  load.nvme_write(sum * stores);
}

void Estimator::add_boundaries(const Policy& policy, ResourceLoad& load) const {
  const BoundaryDemand& demand = outline_.boundary_demand(policy);
  load.down(demand.down);
  load.up(demand.up);
  load.nvme_write(demand.nvme_written);
  load.nvme_read(demand.nvme_read);
}

ResourceLoad Estimator::state_load(const Policy& policy, const PlacedState& placed) const {
  ResourceLoad load(rates_);
  if (outline_.shares_updates) add_sharing(policy, placed.pieces, load);
  for (std::size_t i = 0; i < placed.pieces.size(); ++i)
    add_update(outline_.pieces[i], placed.pieces[i], placed.finds_sums, load);
  return load;
}

void Estimator::add_update(const UpdatePiece& piece, const PlacedPiece& placed, bool has_sum,
                           ResourceLoad& load) const {
  const Tier home = placed.tier[gradient_role];
  const Tier gradient = has_sum && home == Tier::nvme ? Tier::host : home;
  double pass = piece.updated[gradient_role] + piece.updated[weight_role];
  bring(gradient, placed.engine, piece.updated[gradient_role], load);
  take_back(placed.tier[weight_role], placed.engine, piece.updated[weight_role], load);
  for (std::size_t role = 0; role < num_state_roles; ++role) {
    if (!outline_.updated[role]) continue;
    bring(placed.tier[role], placed.engine, piece.updated[role], load);
    pass += piece.updated[role];
    if (role == weight_role) continue;
    take_back(placed.tier[role], placed.engine, piece.updated[role], load);
    pass += piece.updated[role];
  }
  if (placed.engine == Tier::device) return load.device_pass(pass);
  load.host_update(pass, piece.updated_elements * update_seconds_per_element_);
}

// Each rank's part comes to the others' devices, and from there home.
void Estimator::add_sharing(const Policy& policy, const Pieces& pieces, ResourceLoad& load) const {
  const bool all_resident = policy.fractions[weight_role].device >= 1;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const double own = outline_.pieces[i].updated[weight_role];
    const double others = outline_.pieces[i].bytes[weight_role] - own;
    const Tier home = pieces[i].tier[weight_role];
    load.gather(others);
    if (all_resident) continue;
    if (home == Tier::device) {
      load.device_copy(own + others);
      continue;
    }
    load.up(own);  // host memory still has what went on to a drive
    take_back(home, Tier::device, others, load);
  }
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

bool finds_sums(const StepOutline& outline, const Policy& policy,
                const std::vector<PlacedPiece>& pieces) {
  if (policy.update_order == UpdateOrder::during_backward) return true;
  if (!outline.pieces_are_tiles) return false;
  int sums = 0;  // from the first that this rank updates
  for (const int piece : outline.by_completion) {
    const auto i = static_cast<std::size_t>(piece);
    const bool is_own = outline.pieces[i].updated[gradient_role] > 0;
    const bool is_sum = outline.pieces[i].bytes[gradient_role] > 0;
    if (is_sum && pieces[i].tier[gradient_role] == Tier::nvme) sums += is_own || sums > 0;
  }
  return sums <= policy.staging_slots;
}

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
      if (!outline.updated[role] || outline.pieces[i].updated[role] == 0) continue;
      resident = resident && placed[i].tier[role] == Tier::device;
      bytes += outline.pieces[i].updated[role];
    }
    placed[i].engine = resident || engines.next(static_cast<std::uint64_t>(bytes)) == 1
                           ? Tier::device
                           : Tier::host;
  }
  return placed;
}

}  // namespace

PlacedState place_state(const StepOutline& outline, const Policy& policy) {
  PlacedState placed{place_pieces(outline, policy), false};
  placed.finds_sums = finds_sums(outline, policy, placed.pieces);
  return placed;
}

}  // namespace strata
