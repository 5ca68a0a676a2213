#pragma once
// A Plan is a Program made concrete for one machine: the home of every tile, the regions each
// tier's memory is cut into, and per sequence the ops of every lane with their edges. It is a
// value: print it, hash it, verify it, simulate it. Executors walk it and decide nothing.
//
// Lanes are in-order queues. The step lanes serve forward and backward; the state lanes serve the
// optimizer, so that the next forward's fetches never queue behind the updates that run beside it
// (docs/adr/0002-state-lanes.md). NVMe lanes issue in order and complete out of order. Steps are no
// barriers: an edge may point to an op of the previous step (steps_back = 1), and lanes run on into
// the next step of the same sequence. Changing sequence (train to eval) drains all lanes first.
//
// A Plan is one rank's. The ranks' Plans are made of Programs that differ in `rank` alone, with one
// policy and one set of limits, so they issue the same collectives in the same order; budgets and
// bytes are per rank.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strata/program/program.hpp"

namespace strata {

enum class Tier : std::uint8_t { device, host, nvme };
inline constexpr int num_tiers = 3;
std::string_view tier_name(Tier tier);  // the config's words: "gpu", "cpu", "nvme"

enum class Lane : std::uint8_t {
  read,
  h2d,
  compute,
  comm,
  d2h,
  write,  // step lanes
  update,
  state_read,
  state_h2d,
  state_d2h,
  state_write,  // state lanes
  save,         // checkpoints while training goes on
};
inline constexpr int num_lanes = 12;
std::string_view lane_name(Lane lane);   // for tools and logs: "h2d", "state_read"
std::string_view lane_label(Lane lane);  // for pictures: "CPU to GPU", "NVMe read, state"
constexpr bool is_nvme_lane(Lane lane) {
  return lane == Lane::read || lane == Lane::write || lane == Lane::state_read ||
         lane == Lane::state_write;
}
constexpr bool completes_in_order(Lane lane) { return !is_nvme_lane(lane); }

// Bytes of one tier. Offsets count from the start of the tier's slab (or of the drive's file).
struct Region {
  Tier tier = Tier::device;
  std::uint8_t drive = 0;  // nvme only
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t end() const { return offset + bytes; }
  bool overlaps(const Region& other) const {
    return tier == other.tier && drive == other.drive && offset < other.end() &&
           other.offset < end();
  }
  Region part(std::uint64_t begin, std::uint64_t size) const {
    return {tier, drive, offset + begin, size};
  }
};

// What a region holds, for the checker and for error messages.
enum class Content : std::uint8_t {
  value,         // a tile of a shard
  contribution,  // a gradient not yet summed
  scratch,
  partials,  // a gradient tile's partial sums of squares (f64)
  scalars,   // UpdateScalars
  // Of several ranks only:
  rank_contribution,  // a gradient of one rank's tokens, not yet summed over the ranks
  rank_sums,          // per rank, the sum of its partials (f64); tile: a rank, or -1: all
  rank_metrics,       // per rank, its metrics as its sequence makes them; tile: a rank, or -1: all
};
// Instead of a tile's number.
inline constexpr int whole_shard = -1;  // all that this rank holds
inline constexpr int all_slices = -2;   // a sliced shard's slices of all ranks, in one vector
inline constexpr int own_slice = -3;    // this rank's part of a replicated shard
struct TileRef {
  ShardId shard;
  int tile = whole_shard;
  Content content = Content::value;
  bool operator==(const TileRef&) const = default;
};

struct Operand {
  TileRef what;
  Region region;
  Access access = Access::read;
};

enum class OpKind : std::uint8_t {
  feed,        // step argument (input of a micro-batch) to device
  copy,        // between device and host memory, or within the device; operands: source, target
  read,        // nvme to host; operands: source, target
  write,       // host to nvme; operands: source, target
  run,         // a segment of the model; operands in the order of Segment::uses, then scratch. Of
               // model state it sees Program::model_elements(); what lies behind is padding
  accumulate,  // contribution into a gradient tile; operands: contribution, gradient
  square,      // partial sums of squares of a gradient tile; operands: gradient, partials
  norm,        // all partials to UpdateScalars; operands: partials..., scalars
  update,  // optimizer; operands in the order of Segment::uses, told apart by role, then scalars
           // (after the norm) or the gradient tile's partials (during backward: no clipping, a
           // non-finite tile ends the run)
  gather,  // all-gather on the comm lane; operands: this rank's slice, the whole of all ranks. The
           // slice may be its part of the whole
  reduce,  // reduce-scatter on the comm lane, in rank order; operands: the whole, this rank's slice
           // of the sum, which may be its part of the whole. Padding counts as zeros
  report,  // losses and scalars to the step's result, when the norm is known or, with a barrier,
           // as the last op; operands: metrics (or the ranks' metrics), scalars
  sum,     // several ranks: this rank's partials, in order, to one f64; operands: partials..., sum.
           // The ranks' sums, gathered, are then the norm's only partials
  save,    // on the save lane: a tile of master or moments as it is before this step's update, to
           // the StateSink, which has copied it when the op is complete; operands: the tile in host
           // memory, then, of a split master, its weight's tile in host memory
  commit,  // on the save lane: the step's state on a versioned store becomes durable; operands: the
           // homes of master and moments, then, of several ranks, the ranks' sums, then the
           // scalars. The next step writes none of these before it: its writes to the homes wait
           // for it, and so do its sum and norm: where one rank writes on, all ranks have committed
};
std::string_view op_kind_name(OpKind kind);

using OpId = StrongId<struct OpTag>;

struct Edge {
  OpId op;
  std::int32_t steps_back = 0;  // 0: same step; 1: the previous one
};

struct Op {
  OpId id;
  OpKind kind = OpKind::run;
  Lane lane = Lane::compute;
  SegmentId segment;  // the segment this op serves
  std::vector<Operand> operands;
  std::vector<Edge> after;
  bool first_contribution = false;  // accumulate: assign instead of add
};

// Whether lanes run on into the next step. With a barrier, the last op of a step starts when all
// writes of the step are complete, and no lane begins the next step before that op is.
enum class StepEnd : std::uint8_t { open, barrier };

struct Schedule {
  std::string name;             // the sequence's; "train_save": another of "train"
  StepEnd end = StepEnd::open;  // edges say it; this tells derive_edges()
  std::vector<Op> ops;          // in emission order; OpId indexes it
  std::array<std::vector<OpId>, num_lanes> lanes;  // each lane's ops in order
};

// A run of equal slots in one tier, taken round robin; the number of slots is the look-ahead.
struct SlotPool {
  std::string name;  // "weight slots"; pools of one name differ in slot_bytes
  Tier tier = Tier::device;
  std::uint64_t offset = 0;
  std::uint64_t slot_bytes = 0;
  int num_slots = 0;
};

struct TierLimits {
  std::uint64_t device_bytes = ~std::uint64_t{0};  // offload.gpu_limit
  std::uint64_t host_bytes = ~std::uint64_t{0};    // offload.cpu_limit
  std::vector<std::uint64_t>
      drive_bytes;  // free bytes per path of offload.nvme_paths; empty: no NVMe tier
  std::vector<double> drive_weights;  // relative bandwidth; empty: equal
  std::uint64_t io_alignment = 4096;
  // Of host_bytes, what loads and saves take beside the tier.
  std::uint64_t buffer_bytes = 0;
};

// Fractions of the bytes of each role per tier; they sum to 1.
struct TierFractions {
  double device = 0, host = 1, nvme = 0;
};

// All in host memory, but what is saved for backward on the device.
constexpr std::array<TierFractions, num_roles> default_fractions() {
  std::array<TierFractions, num_roles> fractions{};
  fractions[static_cast<std::size_t>(Role::saved)] = {1, 0, 0};
  return fractions;
}

enum class UpdateOrder : std::uint8_t {
  after_backward,   // after the norm, as gradients arrived; the next step begins when all are done
  deferred,         // after the norm, in the order of next use; runs on into the next forward
  during_backward,  // as soon as a tile's gradient is complete; only without clipping
};

struct Policy {
  // Of weight, gradient, master, moments, activation and saved; others are not looked at.
  std::array<TierFractions, num_roles> fractions = default_fractions();
  int weight_slots = 2;      // per size class, whole blocks on the device
  int gradient_slots = 2;    // contributions, whole blocks on the device
  int activation_slots = 3;  // in flight on the device: boundary activations, and saved shards
  int state_slots = 4;  // tiles of optimizer state in host memory on their way from and to NVMe
                        // (sets of all roles)
  int staging_slots =
      4;  // weight and gradient tiles in host memory between device and host or NVMe
  UpdateOrder update_order = UpdateOrder::deferred;
  // Of the updates whose state is not on the device: the fraction, in bytes, that the device makes
  // while the state passes through it. The rest are the host's.
  double streamed_updates = 0;
  // There is a schedule "train_save" beside "train": the same step, which also hands the state that
  // it begins with to a checkpoint.
  bool background_saves = false;
  // State on NVMe has two places per tile, and every step of "train" ends with a commit.
  bool versioned_state = false;
};

// Bytes of one role or use in one tier, on one rank.
struct Usage {
  std::string name;  // "master", "weight slots", "scratch"
  bool is_home = false;
  Role role = Role::weight;  // homes only
  std::array<std::uint64_t, num_tiers> bytes{};
};

struct Plan {
  std::vector<std::vector<Region>>
      homes;  // [shard][tile]; inputs and activation gradients have none (empty)
  std::vector<SlotPool> pools;
  std::vector<Schedule> schedules;
  std::vector<Usage> usage;
  std::array<std::uint64_t, num_tiers> tier_bytes{};  // slab sizes: the peak of each tier
  std::vector<std::uint64_t> drive_bytes;             // nvme, per drive
  Region transfer;      // host: one tile's worth, for loading and saving outside of steps
  Region save_buffers;  // host: what a checkpoint is on its way to the drive in; no bytes: none is
                        // written in the background
  Policy policy;
  TierLimits limits;

  const Schedule* schedule(std::string_view name) const;
};

// Throws OutOfMemory (naming tier, need, limit and the largest contributors) or ConfigError when
// the policy cannot be followed on this machine. Pure: same arguments, same Plan.
Plan make_plan(const Program& program, const TierLimits& limits, const Policy& policy);

// Adds edges to ops emitted in program order: read-after-write, write-after-read and
// write-after-write over regions, within a step and from the previous one, and those of a barrier
// between steps. Edges implied by lane order are left out.
void derive_edges(Schedule& schedule);

// One thing wrong with a Plan.
struct Violation {
  std::string what;
};
// Proves a Plan without trusting the planner: over three steps, each operand holds the version the
// Program says, conflicting ops are ordered by edges and in-order lanes, regions stay inside their
// tiers and homes do not overlap, no cycle; and a step that is to begin when all updates are done
// does. Empty: the Plan is right. At most 20 violations are
// listed.
std::vector<Violation> verify(const Program& program, const Plan& plan);

// Bytes that a gather brings to one rank, or that a reduce takes from it; 0 for other ops.
std::uint64_t collective_bytes(const Op& op);
// Bytes that an op moves over the link of its lane, as direct I/O rounds them. 0: it moves none, or
// stays within one tier of one rank, as copies on the comm lane do.
std::uint64_t link_bytes(const Op& op, std::uint64_t io_alignment);

// Bytes that one step of a schedule moves from and to each drive, rounded up as direct I/O does.
struct NvmeTraffic {
  std::vector<std::uint64_t> drive_read_bytes, drive_written_bytes;  // by drive
  std::uint64_t read_bytes() const;
  std::uint64_t written_bytes() const;
};
// Throws ConfigError when the plan has no such schedule. Pure.
NvmeTraffic nvme_traffic(const Plan& plan, std::string_view schedule);

// The placement table (role x tier: bytes and %), slots, scratch and peak per tier.
std::string format_plan(const Program& program, const Plan& plan);
// The whole Plan, ops and edges included.
std::string plan_to_json(const Program& program, const Plan& plan);
// XXH3 of everything that decides what a run does.
std::uint64_t plan_hash(const Program& program, const Plan& plan);

}  // namespace strata
