#include "strata/program/program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strata/core/error.hpp"

namespace strata {
namespace {

bool is_tiled(Role role) {
  return role == Role::weight || role == Role::gradient || role == Role::master ||
         role == Role::moment1 || role == Role::moment2;
}

[[noreturn]] void refuse(const Segment& segment, const std::string& why) {
  throw ConfigError(fmt::format("program: segment '{}': {}", segment.name, why));
}

// Whether a shard of this role exists before the first segment of a sequence.
bool lives_before(Role role) {
  return role == Role::weight || role == Role::master || role == Role::moment1 ||
         role == Role::moment2 || role == Role::input;
}

class SequenceCheck {
 public:
  explicit SequenceCheck(const Program& program) : program_(program) {
    for (const Shard& shard : program.shards) written_.push_back(lives_before(shard.role));
  }
  void see(const Segment& segment) {
    for (const Use& use : segment.uses) see(segment, use);
  }

 private:
  void see(const Segment& segment, const Use& use) {
    if (use.shard.value < 0 || use.shard.index() >= program_.shards.size())
      refuse(segment, fmt::format("uses unknown shard {}", use.shard.value));
    const Shard& shard = program_.shard(use.shard);
    if (use.tile >= program_.num_tiles(use.shard))
      refuse(segment, fmt::format("uses tile {} of {}", use.tile, shard.name));
    const bool needs_value = use.access == Access::read || use.access == Access::update;
    if (needs_value && !written_[use.shard.index()])
      refuse(segment, fmt::format("reads '{}' before anything produced it", shard.name));
    if (use.access == Access::accumulate && shard.role != Role::gradient)
      refuse(segment, fmt::format("accumulates into '{}', which is no gradient", shard.name));
    if (use.access != Access::read) written_[use.shard.index()] = true;
  }
  const Program& program_;
  std::vector<bool> written_;
};

}  // namespace

std::string_view role_name(Role role) {
  switch (role) {
    case Role::weight:
      return "weight";
    case Role::gradient:
      return "gradient";
    case Role::master:
      return "master";
    case Role::moment1:
      return "moment1";
    case Role::moment2:
      return "moment2";
    case Role::activation:
      return "activation";
    case Role::activation_gradient:
      return "activation_gradient";
    case Role::input:
      return "input";
    case Role::metric:
      return "metric";
  }
  return "?";
}

std::string_view segment_kind_name(SegmentKind kind) {
  switch (kind) {
    case SegmentKind::forward:
      return "forward";
    case SegmentKind::backward:
      return "backward";
    case SegmentKind::loss:
      return "loss";
    case SegmentKind::score:
      return "score";
    case SegmentKind::norm:
      return "norm";
    case SegmentKind::update:
      return "update";
  }
  return "?";
}

const Sequence* Program::sequence(std::string_view name) const {
  const auto found = std::ranges::find(sequences, name, &Sequence::name);
  return found == sequences.end() ? nullptr : &*found;
}

ShardId Program::add(Shard shard) {
  shard.id = {static_cast<std::int32_t>(shards.size())};
  shards.push_back(std::move(shard));
  return shards.back().id;
}

SegmentId Program::add(Segment segment) {
  segment.id = {static_cast<std::int32_t>(segments.size())};
  segments.push_back(std::move(segment));
  return segments.back().id;
}

ShardId Program::find(Role role, int block, int micro_batch) const {
  for (const Shard& shard : shards)
    if (shard.role == role && shard.block == block && shard.micro_batch == micro_batch)
      return shard.id;
  return {};
}

int Program::num_tiles(ShardId id) const {
  const Shard& s = shard(id);
  if (!is_tiled(s.role)) return 1;
  return static_cast<int>((s.count + tile_elements - 1) / tile_elements);
}

std::int64_t Program::tile_begin(ShardId, int tile) const { return tile * tile_elements; }

std::int64_t Program::tile_count(ShardId id, int tile) const {
  const Shard& s = shard(id);
  if (!is_tiled(s.role)) return s.count;
  return std::min(tile_elements, s.count - tile * tile_elements);
}

std::int64_t Program::tile_bytes(ShardId id, int tile) const {
  return tile_count(id, tile) * dtype_bytes(shard(id).dtype);
}

void validate(const Program& program) {
  if (program.tile_elements <= 0 || program.tile_elements % norm_chunk_elements != 0)
    throw ConfigError(fmt::format("a tile of {} elements is no multiple of {}",
                                  program.tile_elements, norm_chunk_elements));
  for (const Shard& shard : program.shards)
    if (shard.count <= 0)
      throw ConfigError(
          fmt::format("program: shard '{}' has {} elements", shard.name, shard.count));
  for (const Sequence& sequence : program.sequences) {
    SequenceCheck check(program);
    for (SegmentId id : sequence.segments) check.see(program.segment(id));
  }
}

}  // namespace strata
