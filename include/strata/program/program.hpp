#pragma once
// A Program says what one optimizer step needs, as data: the shards of model state, the segments of
// work in order, and per segment which shards it reads, produces, accumulates or updates and how
// much scratch it needs. It says nothing of where anything lives: the planner decides that, and the
// same Program serves every placement.
//
// Terms. Block: a unit of the layer schedule (embedding, decoder layer, head). Shard: one block's
// flat vector for one role on one rank. Tile: `tile_elements` consecutive elements of a shard (the
// last may be shorter), the unit of placement and of I/O; a block's weight, gradient, master and
// moments share their tile boundaries. Segment: one piece of work.
//
// Ranks. With `world` > 1 a block's vector is padded and cut into one slice per rank, each as long
// and each a multiple of the norm chunk; the ZeRO stage says of which roles a rank holds its slice
// alone. Tiles begin anew with each slice, so shards of a block share tile boundaries whether
// sliced or not. The Programs of all ranks are alike but for `rank`.
//
// Program is a value; no thread contract.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "strata/core/block_q8.hpp"
#include "strata/core/dtype.hpp"
#include "strata/core/strong_id.hpp"

namespace strata {

using ShardId = StrongId<struct ShardTag>;
using SegmentId = StrongId<struct SegmentTag>;

enum class Role : std::uint8_t {
  weight,
  gradient,
  master,
  moment1,
  moment2,
  activation,           // a block's output kept for backward
  activation_gradient,  // gradient of a block's output, live between two backward segments
  input,                // tokens, labels and document bounds of one micro-batch
  metric,               // small results read by the host: losses
  saved,                // a block's insides, kept for backward instead of computed again
};
inline constexpr int num_roles = 10;
std::string_view role_name(Role role);

// Whether each rank has all of a block's vector, or its own slice.
enum class Sharing : std::uint8_t { replicated, sliced };

struct Shard {
  ShardId id;
  Role role = Role::weight;
  int block = -1;
  int micro_batch = -1;  // activations and inputs; -1 for model state
  DType dtype = DType::f32;
  std::int64_t count = 0;  // elements, on this rank
  std::string name;        // "weight/layers.3"

  // Model state of several ranks; see Program::shared().
  Sharing sharing = Sharing::replicated;
  std::int64_t whole_count = 0;  // elements of the block's vector before padding; 0: count

  std::int64_t bytes() const { return storage_bytes(dtype, count); }  // of all its tiles
};

enum class Access : std::uint8_t {
  read,
  produce,     // writes every element, reads none
  accumulate,  // writes a contribution of the shard's contribution dtype, which is added to the
               // shard
  update,      // reads and writes in place
};

// One shard, or one tile of it (`tile` >= 0), as one segment touches it.
struct Use {
  ShardId shard;
  Access access = Access::read;
  int tile = -1;
};

enum class SegmentKind : std::uint8_t {
  forward,   // block output from its input
  backward,  // gradients of a block; its forward is recomputed from the boundary, or was saved
  loss,      // head block: loss, and its gradients in the same pass over chunks of tokens
  score,     // head block: loss only
  norm,      // global gradient norm, clip factor, non-finite check
  update,    // optimizer update of one tile: reads its gradient, updates its master and moments,
             // and produces its weight; or updates that too, where it is half of a split master
};
std::string_view segment_kind_name(SegmentKind kind);

// What bounds a kernel: the rate of matrix products, attention's, or memory.
enum class KernelClass : std::uint8_t { matmul, attention, elementwise };

// Kernel calls of one kind and size, as the model's own code makes them.
struct KernelWork {
  KernelClass kind = KernelClass::elementwise;
  DType dtype = DType::bf16;  // of the inputs
  double flops = 0;           // of one call; 0 where memory bounds it
  double bytes = 0;           // of one call, read plus written
  int calls = 1;
};

// Everything one segment computes.
struct SegmentWork {
  std::vector<KernelWork> kernels;
  double flops() const;
};

struct Segment {
  SegmentId id;
  SegmentKind kind = SegmentKind::forward;
  int block = -1;
  int micro_batch = -1;
  int tile = -1;  // update only: of its master
  std::vector<Use> uses;
  std::uint64_t scratch_bytes = 0;
  int work = -1;     // index into Program::works; -1: none that a model declared
  std::string name;  // "backward layers.3 micro-batch 1"
};

// A named run of segments in order: a training step, or one evaluation micro-batch.
struct Sequence {
  std::string name;
  std::vector<SegmentId> segments;
};

// Programs that compute the same step, bit for bit, in another order or with other memory. What a
// variant costs and saves is the planner's to judge.
struct ProgramVariant {
  // Micro-batches that pass each block together: 1 is horizontal accumulation (all blocks for one
  // micro-batch), all micro-batches of the step vertical. Divides their number.
  int accumulation_group = 1;
  int kept_layers = 0;  // decoder layers, spread evenly, that keep their insides for backward
};

struct Program {
  std::vector<Shard> shards;        // indexed by ShardId
  std::vector<Segment> segments;    // indexed by SegmentId
  std::vector<Sequence> sequences;  // "train" and "eval", either may be absent
  std::vector<std::string> blocks;  // block names in forward order
  std::vector<SegmentWork> works;   // shared by segments that compute the same
  std::int64_t tile_elements = 4 << 20;
  DType contribution_dtype = DType::bf16;  // of gradients before they are summed: the compute dtype
  int world = 1;       // ranks that train together; set before any state is declared
  int rank = 0;        // this Program's
  int zero_stage = 3;  // what is sliced among them: nothing, master and moments, gradients too, all

  const Shard& shard(ShardId id) const { return shards[id.index()]; }
  const Segment& segment(SegmentId id) const { return segments[id.index()]; }
  double flops(const Segment& segment) const {
    return segment.work < 0 ? 0 : works[static_cast<std::size_t>(segment.work)].flops();
  }
  const Sequence* sequence(std::string_view name) const;  // nullptr when absent

  ShardId add(Shard shard);        // assigns the id
  SegmentId add(Segment segment);  // assigns the id; appending it to a sequence is the caller's

  // The shard of `role` of `block`, or an invalid id.
  ShardId find(Role role, int block, int micro_batch = -1) const;

  // The use of its shard of `role` by an update, or nullptr: it has one of a role at most.
  const Use* use_of(const Segment& update, Role role) const;

  // Tiles of one shard. Model state is cut by tile_elements; activations, inputs and metrics are
  // one tile each.
  int num_tiles(ShardId id) const;
  std::int64_t tile_begin(ShardId id, int tile) const;  // first element
  std::int64_t tile_count(ShardId id, int tile) const;  // elements
  std::int64_t tile_bytes(ShardId id, int tile) const;

  // --- Slices. Only model state is sliced; other shards are one slice, as all are of one rank.

  // Model state declared as the whole vector of its block, as the ranks share it: padded, and cut
  // to this rank's slice if the stage slices its role. With one rank: as it was.
  Shard shared(Shard whole) const;
  bool slices(Role role) const;  // whether the stage does
  int num_slices(ShardId id) const;
  std::int64_t slice_elements(ShardId id) const;  // of one, padding included
  int slice_tiles(ShardId id) const;              // of one
  // A tile's place: its index among the tiles of all slices of the block.
  int place(ShardId id, int tile) const;
  int tile_at(ShardId id, int place) const;               // -1: another rank's
  bool is_own(ShardId id, int tile) const;                // it lies in this rank's slice
  std::int64_t place_begin(ShardId id, int place) const;  // first element, in the block's vector
  std::int64_t whole_elements(ShardId id) const;          // of all slices, padding included
  // What a model's segment sees of the shard: the block's vector without padding.
  std::int64_t model_elements(ShardId id) const;

 private:
  std::unordered_map<std::uint64_t, ShardId> found_;  // first shard of a role, block, micro-batch
};

// Throws ConfigError if the Program contradicts itself: an unknown id, a read of something never
// produced, a tile size that is no multiple of the norm chunk, an update that lacks an operand or
// splits a master with a weight it does not read, model state that is not shared as the ranks and
// their stage say.
void validate(const Program& program);

// Elements over which one partial sum of squares of a gradient is taken; tiles begin at multiples
// of it, so the norm's summation order does not depend on the tile size. So do slices: a chunk's
// sum does not depend on the number of ranks either.
inline constexpr std::int64_t norm_chunk_elements = 4096;

}  // namespace strata
