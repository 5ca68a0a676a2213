#include "strata/program/program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "program/ranks.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

bool is_moment(Role role) { return role == Role::moment1 || role == Role::moment2; }

// Block and micro-batch begin at -1.
std::uint64_t search_key(Role role, int block, int micro_batch) {
  return static_cast<std::uint64_t>(role) << 58 | static_cast<std::uint64_t>(block + 1) << 32 |
         static_cast<std::uint32_t>(micro_batch + 1);
}

[[noreturn]] void refuse(const Segment& segment, const std::string& why) {
  throw ConfigError(fmt::format("program: segment '{}': {}", segment.name, why));
}

// Whether a shard of this role exists before the first segment of a sequence.
bool lives_before(Role role) {
  return role == Role::weight || role == Role::master || is_moment(role) || role == Role::input;
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

void check_shard(const Shard& shard) {
  const auto refuse_shard = [&](const std::string& why) {
    throw ConfigError(fmt::format("program: shard '{}' {}", shard.name, why));
  };
  if (shard.count <= 0) refuse_shard(fmt::format("has {} elements", shard.count));
  if (shard.dtype == DType::q8 && !is_moment(shard.role))
    refuse_shard("is q8, the format of moments");
  if (shard.dtype == DType::u16 && shard.role != Role::master)
    refuse_shard("is u16, the format of a split master");
}

bool may_update(Access access, Role role) {
  if (role == Role::gradient) return access == Access::read;
  if (role == Role::weight) return access == Access::produce || access == Access::update;
  return access == Access::update && (role == Role::master || is_moment(role));
}

// Uses of one tile of shards of one length, each of another role and used as its role is.
void check_update_uses(const Program& program, const Segment& update, const Use& master) {
  const int place = program.place(master.shard, update.tile);
  for (const Use& use : update.uses) {
    const Shard& shard = program.shard(use.shard);
    if (!may_update(use.access, shard.role) || program.use_of(update, shard.role) != &use)
      refuse(update, fmt::format("'{}' is no operand of an update, or not so used", shard.name));
    if (use.tile < 0 || program.place(use.shard, use.tile) != place ||
        shard.block != update.block ||
        program.slice_elements(use.shard) != program.slice_elements(master.shard))
      refuse(update, fmt::format("uses another tile of '{}'", shard.name));
  }
}

void check_update(const Program& program, const Segment& update) {
  for (const Role role : {Role::gradient, Role::master, Role::moment1, Role::weight})
    if (program.use_of(update, role) == nullptr)
      refuse(update, fmt::format("has no {}", role_name(role)));
  check_update_uses(program, update, *program.use_of(update, Role::master));
  const Use& weight = *program.use_of(update, Role::weight);
  const bool is_split =
      program.shard(program.use_of(update, Role::master)->shard).dtype == DType::u16;
  const bool is_half =
      weight.access == Access::update && program.shard(weight.shard).dtype == DType::bf16;
  if (is_split && !is_half) refuse(update, "the master is split, but the weight is not its half");
}

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
    case Role::saved:
      return "saved";
  }
  return "?";
}

double SegmentWork::flops() const {
  double sum = 0;
  for (const KernelWork& kernel : kernels) sum += kernel.flops * kernel.calls;
  return sum;
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
  found_.emplace(search_key(shard.role, shard.block, shard.micro_batch), shard.id);
  shards.push_back(std::move(shard));
  return shards.back().id;
}

SegmentId Program::add(Segment segment) {
  segment.id = {static_cast<std::int32_t>(segments.size())};
  segments.push_back(std::move(segment));
  return segments.back().id;
}

ShardId Program::find(Role role, int block, int micro_batch) const {
  const auto found = found_.find(search_key(role, block, micro_batch));
  return found == found_.end() ? ShardId{} : found->second;
}

const Use* Program::use_of(const Segment& update, Role role) const {
  const auto found =
      std::ranges::find(update.uses, role, [&](const Use& use) { return shard(use.shard).role; });
  return found == update.uses.end() ? nullptr : &*found;
}

void validate(const Program& program) {
  if (program.tile_elements <= 0 || program.tile_elements % norm_chunk_elements != 0)
    throw ConfigError(fmt::format("a tile of {} elements is no multiple of {}",
                                  program.tile_elements, norm_chunk_elements));
  check_ranks(program);
  for (const Shard& shard : program.shards) check_shard(shard);
  for (const Sequence& sequence : program.sequences) {
    SequenceCheck check(program);
    for (SegmentId id : sequence.segments) check.see(program.segment(id));
    for (SegmentId id : sequence.segments)
      if (program.segment(id).kind == SegmentKind::update)
        check_update(program, program.segment(id));
  }
}

}  // namespace strata
