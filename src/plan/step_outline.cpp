#include "plan/step_outline.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <numeric>
#include <set>
#include <tuple>

#include "plan/memory_alignment.hpp"
#include "plan/saved_state.hpp"
#include "plan/spread.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::int64_t most_pieces = 128;
constexpr std::int64_t most_split_pieces = 1024;  // that tell the ranks' tiles apart

const Sequence& train_sequence(const Program& program) {
  const Sequence* train = program.sequence("train");
  if (train == nullptr) throw ConfigError("the program has no training step to place");
  return *train;
}

// Each block's tensors of one role live together.
std::map<int, Tier> place_boundaries(const StepOutline& outline, Role role,
                                     const TierFractions& fractions) {
  Spread spread({fractions.device, fractions.host, fractions.nvme});
  std::map<int, Tier> tiers;
  for (const auto& [key, bytes] : outline.boundary_bytes)
    if (key.first == role) tiers[key.second] = static_cast<Tier>(spread.next(bytes));
  return tiers;
}

void note_at_once(const std::map<std::uint64_t, int>& counts,
                  std::map<std::uint64_t, SlotClass>& classes) {
  for (const auto& [slot, count] : counts)
    classes[slot].at_once = std::max(classes[slot].at_once, count);
}

std::uint64_t aligned(std::int64_t bytes) {
  return memory_aligned(static_cast<std::uint64_t>(bytes));
}

}  // namespace

StepOutline::StepOutline(const Program& program)
    : world(program.world),
      shares_updates(program.slices(Role::master) && !program.slices(Role::weight)),
      blocks(program.blocks.size()) {
  outline_state(program);
  outline_blocks(program);
  outline_continued_sums(program);
  outline_classes(program);
  outline_boundaries(program);
  outline_passing(program);
  outline_fixed(program);
  outline_metrics(program);
  outline_work(program);
}

void StepOutline::outline_state(const Program& program) {
  std::int64_t most_tiles = 1;  // a small model has fewer tiles than there are ranks
  for (const Shard& shard : program.shards) {
    if (!is_model_state(shard.role)) continue;
    splits_masters |= is_split(program, shard.id);
    RoleOutline& role = roles[static_cast<std::size_t>(shard.role)];
    role.bytes += static_cast<double>(shard.bytes());
    sliced[static_cast<std::size_t>(shard.role)] = program.slices(shard.role);
    role.tiles += program.num_tiles(shard.id);
    most_tiles = std::max(most_tiles, role.tiles / program.num_slices(shard.id));
    for (int tile = 0; tile < program.num_tiles(shard.id); ++tile) {
      const std::int64_t bytes = program.tile_bytes(shard.id, tile);
      role.tile = std::max(role.tile, aligned(bytes));
      role.padding += static_cast<double>(aligned(bytes)) - static_cast<double>(bytes);
    }
  }
  const bool all_sliced = program.slices(Role::weight);
  const bool are_ranks_apart = !all_sliced && most_tiles * world <= most_split_pieces;
  const auto tiles_per_piece = static_cast<int>(ceil_div(most_tiles, most_pieces));
  pieces_are_tiles = tiles_per_piece == 1 && (all_sliced || are_ranks_apart);
  add_pieces(program, tiles_per_piece, pieces_are_tiles && are_ranks_apart ? 1 : world);
  order_pieces(program);
}

// Of some tiles of each of some slices.
void StepOutline::add_pieces(const Program& program, int tiles_per_piece, int slices_per_piece) {
  for (int block = 0; block < static_cast<int>(program.blocks.size()); ++block) {
    const ShardId weight = program.find(Role::weight, block);
    const int tiles = weight.valid() ? program.slice_tiles(weight) : 0;
    for (int slice = 0; slice < world; slice += slices_per_piece)
      for (int first = 0; first < tiles; first += tiles_per_piece) {
        std::vector<int> places;
        for (int of = slice; of < slice + slices_per_piece; ++of)
          for (int tile = first; tile < std::min(tiles, first + tiles_per_piece); ++tile)
            places.push_back(of * tiles + tile);
        pieces.push_back(piece_of(program, block, places));
      }
  }
}

UpdatePiece StepOutline::piece_of(const Program& program, int block,
                                  const std::vector<int>& places) {
  UpdatePiece piece;
  piece.block = block;
  for (const int place : places) add_place(program, place, piece);
  return piece;
}

// Slices are alike. Where they have masters of their own, ranks update only these.
void StepOutline::add_place(const Program& program, int place, UpdatePiece& piece) {
  const ShardId weight = program.find(Role::weight, piece.block);
  const int tiles = program.slice_tiles(weight);
  const bool is_own = program.world == 1 || place / tiles == program.rank;
  const bool is_updated = is_own || !program.slices(Role::master);
  const auto elements = static_cast<double>(program.tile_count(weight, place % tiles));
  (is_own ? piece.elements : piece.others_elements) += elements;
  if (is_updated) piece.updated_elements += elements;
  for (std::size_t role = 0; role < num_state_roles; ++role) {
    const ShardId shard = program.find(static_cast<Role>(role), piece.block);
    const int tile = shard.valid() ? program.tile_at(shard, place) : -1;
    if (tile < 0) continue;
    const auto bytes = static_cast<double>(program.tile_bytes(shard, tile));
    piece.bytes[role] += bytes;
    if (is_updated) piece.updated[role] += bytes;
    piece.is_saved |= is_saved(program, shard, tile);
  }
}

void StepOutline::order_pieces(const Program& program) {
  by_completion.resize(pieces.size());
  std::iota(by_completion.begin(), by_completion.end(), 0);
  std::ranges::stable_sort(by_completion, std::greater{}, [&](int piece) {
    return pieces[static_cast<std::size_t>(piece)].block;
  });
  std::vector<int> first_of_block(program.blocks.size() + 1, 0);
  for (const UpdatePiece& piece : pieces)
    ++first_of_block[static_cast<std::size_t>(piece.block) + 1];
  for (std::size_t b = 1; b < first_of_block.size(); ++b)
    first_of_block[b] += first_of_block[b - 1];
  for (const Shard& shard : program.shards) {
    if (!is_model_state(shard.role)) continue;
    const auto block = static_cast<std::size_t>(shard.block);
    for (int piece = first_of_block[block]; piece < first_of_block[block + 1]; ++piece)
      order[static_cast<std::size_t>(shard.role)].push_back(piece);
  }
}

void StepOutline::outline_blocks(const Program& program) {
  const auto whole = [&](const Shard& shard, DType dtype) {
    return aligned(storage_bytes(dtype, program.whole_elements(shard.id)));
  };
  const auto outline_use = [&](const Use& use, bool is_model) {
    const Shard& shard = program.shard(use.shard);
    if (!is_model) {
      if (use.access == Access::update && is_model_state(shard.role))
        updated[static_cast<std::size_t>(shard.role)] = true;
      return;
    }
    if (shard.role == Role::weight && use.access == Access::read) {
      weight_reads_.push_back(shard.block);
      blocks[static_cast<std::size_t>(shard.block)].weight_slot = whole(shard, shard.dtype);
    }
    if (use.access != Access::accumulate) return;
    BlockOutline& block = blocks[static_cast<std::size_t>(shard.block)];
    block.contribution_slot = whole(shard, program.contribution_dtype);
    if (program.slices(Role::gradient))
      block.reduced_slot =
          aligned(storage_bytes(program.contribution_dtype, program.slice_elements(shard.id)));
    block.stored_as_contributed =
        ++block.contributions == 1 && shard.dtype == program.contribution_dtype;
    contribution_tile = std::max(
        contribution_tile,
        aligned(storage_bytes(program.contribution_dtype, program.tile_count(shard.id, 0))));
  };
  for (SegmentId id : train_sequence(program).segments) {
    const Segment& segment = program.segment(id);
    for (const Use& use : segment.uses) outline_use(use, is_model_segment(segment.kind));
  }
}

// As in a group of micro-batches: one segment after the other adds to this sum alone.
void StepOutline::outline_continued_sums(const Program& program) {
  constexpr int several = -1;
  int before = several;
  for (SegmentId id : train_sequence(program).segments) {
    std::set<int> sums;
    for (const Use& use : program.segment(id).uses)
      if (use.access == Access::accumulate) sums.insert(program.shard(use.shard).block);
    if (sums.empty()) continue;
    const int only = sums.size() == 1 ? *sums.begin() : several;
    if (only != several && only == before) ++blocks[static_cast<std::size_t>(only)].continued;
    before = only;
  }
}

void StepOutline::outline_classes(const Program& program) {
  for (const BlockOutline& block : blocks) {
    if (block.weight_slot > 0) ++weight_classes[block.weight_slot].blocks;
    if (block.contribution_slot > 0) ++contribution_classes[block.contribution_slot].blocks;
    if (block.reduced_slot > 0) ++reduced_classes[block.reduced_slot].blocks;
  }
  for (const Segment& segment : program.segments) {
    if (!is_model_segment(segment.kind)) continue;
    std::map<std::uint64_t, int> weights, contributions, reduced;
    for (const Use& use : segment.uses) {
      const Shard& shard = program.shard(use.shard);
      if (!is_model_state(shard.role)) continue;
      const BlockOutline& block = blocks[static_cast<std::size_t>(shard.block)];
      if (shard.role == Role::weight) ++weights[block.weight_slot];
      if (shard.role == Role::gradient) ++contributions[block.contribution_slot];
      if (shard.role == Role::gradient && block.reduced_slot > 0) ++reduced[block.reduced_slot];
    }
    note_at_once(weights, weight_classes);
    note_at_once(contributions, contribution_classes);
    note_at_once(reduced, reduced_classes);
  }
}

void StepOutline::outline_boundaries(const Program& program) {
  const auto& segments = train_sequence(program).segments;
  std::map<ShardId, BoundaryTensor> seen;
  for (std::size_t at = 0; at < segments.size(); ++at)
    for (const Use& use : program.segment(segments[at]).uses) {
      const Shard& shard = program.shard(use.shard);
      if (shard.role != Role::activation && shard.role != Role::saved) continue;
      boundary_bytes[{shard.role, shard.block}] = static_cast<std::uint64_t>(shard.bytes());
      if (shard.role == Role::activation)
        activation_slot = std::max(activation_slot, aligned(shard.bytes()));
      else
        saved_slot = std::max(saved_slot, aligned(shard.bytes()));
      const auto [found, is_new] = seen.try_emplace(
          use.shard, BoundaryTensor{shard.role, shard.block, aligned(shard.bytes()), at, at, 0});
      BoundaryTensor& tensor = found->second;
      if (!is_new && at > tensor.first + 1 && use.access == Access::read) ++tensor.late_reads;
      tensor.last = at;
    }
  for (const auto& [id, tensor] : seen)
    if (tensor.last > tensor.first + 1) boundaries.push_back(tensor);
  std::ranges::stable_sort(boundaries, {}, &BoundaryTensor::first);
}

// What has no home: as many slots as are live at once, and one for the next input.
void StepOutline::outline_passing(const Program& program) {
  const auto& segments = train_sequence(program).segments;
  std::map<ShardId, std::pair<std::size_t, std::size_t>> lives;
  for (std::size_t at = 0; at < segments.size(); ++at)
    for (const Use& use : program.segment(segments[at]).uses) {
      const Role role = program.shard(use.shard).role;
      if (role == Role::activation_gradient || role == Role::input)
        lives.try_emplace(use.shard, at, at).first->second.second = at;
    }
  std::map<std::pair<Role, std::uint64_t>, std::map<std::size_t, int>> changes;
  for (const auto& [id, life] : lives) {
    const Shard& shard = program.shard(id);
    auto& of_size = changes[{shard.role, aligned(shard.bytes())}];
    ++of_size[life.first];
    --of_size[life.second + 1];
  }
  for (const auto& [key, of_size] : changes) {
    int live = 0, most = 0;
    for (const auto& [at, change] : of_size) most = std::max(most, live += change);
    const int slots = key.first == Role::input ? most + 1 : std::max(2, most);
    passing_slots += key.second * static_cast<std::uint64_t>(slots);
  }
}

void StepOutline::outline_fixed(const Program& program) {
  std::uint64_t scratch = 0, transfer = 0;
  for (const Segment& segment : program.segments)
    scratch = std::max(scratch, memory_aligned(segment.scratch_bytes));
  for (const Shard& shard : program.shards) {
    if (is_model_state(shard.role))
      transfer = std::max(transfer, aligned(program.tile_bytes(shard.id, 0)));
    if (shard.role != Role::gradient) continue;
    const std::int64_t chunks = ceil_div(shard.count, norm_chunk_elements);
    BlockOutline& block = blocks[static_cast<std::size_t>(shard.block)];
    block.norm_partials = aligned(chunks * static_cast<std::int64_t>(sizeof(double)));
    fixed_host += block.norm_partials;
  }
  save_buffers = save_buffers_bytes(program);
  fixed_device += scratch;
  fixed_host += transfer + memory_alignment;  // and the update's scalars
  if (world > 1) fixed_host += aligned(world * static_cast<std::int64_t>(sizeof(double)));
}

// In host memory those of several ranks make one table for each sequence.
void StepOutline::outline_metrics(const Program& program) {
  for (const Shard& shard : program.shards) {
    if (shard.role != Role::metric) continue;
    fixed_device += aligned(shard.bytes());
    if (world == 1) fixed_host += aligned(shard.bytes());
  }
  if (world == 1) return;
  for (const Sequence& sequence : program.sequences) {
    std::set<ShardId> metrics;
    std::int64_t bytes = 0;
    for (SegmentId id : sequence.segments)
      for (const Use& use : program.segment(id).uses) {
        const Shard& shard = program.shard(use.shard);
        if (shard.role == Role::metric && metrics.insert(shard.id).second) bytes += shard.bytes();
      }
    fixed_host += aligned(world * bytes);
  }
}

void StepOutline::outline_work(const Program& program) {
  runs_of_work.assign(program.works.size(), 0);
  double all = 0, after_loss = 0;
  bool before_loss = true;
  for (SegmentId id : train_sequence(program).segments) {
    const Segment& segment = program.segment(id);
    if (segment.kind == SegmentKind::loss) before_loss = false, after_loss = 0;
    if (segment.work < 0) continue;
    ++runs_of_work[static_cast<std::size_t>(segment.work)];
    const double flops = program.flops(segment);
    all += flops;
    if (before_loss) first_forward += flops;
    if (segment.kind == SegmentKind::backward) after_loss += flops;
  }
  first_forward = all > 0 ? first_forward / all : 0;
  last_backward = all > 0 ? after_loss / all : 0;
}

const std::vector<int>& StepOutline::fetches(int weight_slots) const {
  auto found = fetches_.find(weight_slots);
  if (found == fetches_.end())
    found = fetches_.emplace(weight_slots, count_fetches(weight_slots)).first;
  return found->second;
}

std::vector<int> StepOutline::count_fetches(int weight_slots) const {
  std::vector<int> counts(blocks.size(), 0);
  std::map<std::uint64_t, std::deque<int>> held;  // by size, oldest first
  for (int block : weight_reads_) {
    const std::uint64_t slot = blocks[static_cast<std::size_t>(block)].weight_slot;
    const SlotClass& size = weight_classes.at(slot);
    const auto slots =
        static_cast<std::size_t>(std::max(size.at_once, std::min(weight_slots, size.blocks)));
    std::deque<int>& ring = held[slot];
    if (std::ranges::find(ring, block) != ring.end()) continue;
    ++counts[static_cast<std::size_t>(block)];
    ring.push_back(block);
    if (ring.size() > slots) ring.pop_front();
  }
  return counts;
}

const BoundaryDemand& StepOutline::boundary_demand(const Policy& policy) const {
  const TierFractions& passed = policy.fractions[static_cast<std::size_t>(Role::activation)];
  const TierFractions& saved = policy.fractions[static_cast<std::size_t>(Role::saved)];
  const std::array<double, 4> key{passed.device, passed.nvme, saved.device, saved.nvme};
  auto found = boundary_demands_.find(key);
  if (found == boundary_demands_.end())
    found = boundary_demands_.emplace(key, count_boundaries(policy)).first;
  return found->second;
}

bool StepOutline::has_boundaries(Role role) const {
  return std::ranges::any_of(boundaries,
                             [&](const BoundaryTensor& tensor) { return tensor.role == role; });
}

// Memory is shared among tensors of one role and size that are not live together.
BoundaryDemand StepOutline::count_boundaries(const Policy& policy) const {
  BoundaryDemand demand;
  std::map<Role, std::map<int, Tier>> tiers;
  for (const Role role : {Role::activation, Role::saved})
    tiers[role] = place_boundaries(*this, role, policy.fractions[static_cast<std::size_t>(role)]);
  std::map<std::tuple<Tier, Role, std::uint64_t>, std::map<std::size_t, int>> changes;
  for (const BoundaryTensor& tensor : boundaries) {
    const Tier tier = tiers.at(tensor.role).at(tensor.block);
    auto& of_size = changes[{tier, tensor.role, tensor.bytes}];
    ++of_size[tensor.first];
    --of_size[tensor.last];
    if (tier == Tier::device) continue;
    const bool is_saved = tensor.role == Role::saved;
    demand.saved_off_device |= is_saved;
    demand.saved_on_nvme |= is_saved && tier == Tier::nvme;
    demand.activations_on_nvme |= !is_saved && tier == Tier::nvme;
    const auto bytes = static_cast<double>(tensor.bytes);
    demand.down += bytes;
    demand.up += bytes * tensor.late_reads;
    if (tier != Tier::nvme) continue;
    demand.nvme_written += bytes;
    demand.nvme_read += bytes * tensor.late_reads;
  }
  for (const auto& [key, of_size] : changes) {
    int live = 0, most = 0;
    for (const auto& [at, change] : of_size) most = std::max(most, live += change);
    demand.homes[static_cast<std::size_t>(std::get<Tier>(key))] +=
        static_cast<double>(std::get<std::uint64_t>(key)) * most;
  }
  return demand;
}

}  // namespace strata
