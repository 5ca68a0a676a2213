#pragma once
// What a Program's training step needs wherever things live: the state in pieces, the order in
// which blocks are asked for, the boundary tensors and their lives, the work of the model. Made
// once per variant, so that many placements can be judged without planning any.

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "strata/plan/plan.hpp"

namespace strata {

inline constexpr int num_state_roles = 5;  // weight, gradient, master, moment1, moment2

// Tiles of one block, placed together.
struct UpdatePiece {
  int block = -1;
  double elements = 0, others_elements = 0;       // in this rank's slice, and in those of others
  double updated_elements = 0;                    // by this rank
  std::array<double, num_state_roles> bytes{};    // that this rank holds
  std::array<double, num_state_roles> updated{};  // of them, what its updates read or write
  bool is_saved = false;                          // in its part of a checkpoint
};

// One block's weights and gradients as forward and backward ask for them, in bytes.
struct BlockOutline {
  std::uint64_t weight_slot = 0;        // whole, of all ranks
  std::uint64_t contribution_slot = 0;  // likewise; 0: no gradient
  std::uint64_t reduced_slot = 0;       // its sum over the ranks, this rank's slice; 0: the whole
  int contributions = 0;                // per step
  int continued = 0;                    // of them, those that the next to any sum follows up
  std::uint64_t norm_partials = 0;      // of its gradient
  bool stored_as_contributed = false;   // its one contribution is the gradient
};

// Slots for whole blocks of one size.
struct SlotClass {
  int blocks = 0, at_once = 0;
};

// A tensor between blocks that outlives the next segment.
struct BoundaryTensor {
  Role role = Role::activation;
  int block = -1;
  std::uint64_t bytes = 0;
  std::size_t first = 0, last = 0;  // positions in the sequence
  int late_reads = 0;               // by others than the next segment
};

// What the boundary tensors ask for under one placement, in bytes.
struct BoundaryDemand {
  std::array<double, num_tiers> homes{};  // at their peak
  // Whether any of activations, and of what is saved, passes the device or host memory.
  bool saved_off_device = false, saved_on_nvme = false, activations_on_nvme = false;
  double down = 0, up = 0, nvme_written = 0, nvme_read = 0;
};

// Bytes of one role, all tiles together.
struct RoleOutline {
  double bytes = 0;
  double padding = 0;      // lost to alignment
  std::uint64_t tile = 0;  // the largest, aligned
  std::int64_t tiles = 0;
};

struct StepOutline {
  explicit StepOutline(const Program& program);

  // How often each block's weights are brought to the device in a step, with so many slots.
  const std::vector<int>& fetches(int weight_slots) const;
  bool has_boundaries(Role role) const;
  const BoundaryDemand& boundary_demand(const Policy& policy) const;
  // The share of the model's flops in the forward passes that begin the step and in the backward
  // passes that end it: what updates can hide under.
  double first_forward = 0, last_backward = 0;

  int world = 1;
  bool shares_updates = false;  // among ranks that each hold the weights whole
  bool pieces_are_tiles = true;
  std::vector<UpdatePiece> pieces;
  std::array<std::vector<int>, num_state_roles> order;  // pieces as the planner deals them
  std::vector<int> by_completion;                       // as backward completes their gradients
  std::array<bool, num_state_roles> updated{};          // read and written by updates
  std::array<bool, num_state_roles> sliced{};           // this rank has its slice alone
  std::array<RoleOutline, num_state_roles> roles{};
  bool splits_masters = false;
  std::uint64_t save_buffers = 0;  // where a plan saves in the background
  std::vector<BlockOutline> blocks;
  // By slot bytes.
  std::map<std::uint64_t, SlotClass> weight_classes, contribution_classes, reduced_classes;
  std::vector<BoundaryTensor> boundaries;
  std::map<std::pair<Role, int>, std::uint64_t> boundary_bytes;  // of one tensor of a block
  std::uint64_t activation_slot = 0, saved_slot = 0;
  std::uint64_t passing_slots = 0;      // of activation gradients and inputs, all together
  std::uint64_t contribution_tile = 0;  // largest tile of a contribution, aligned
  // Scratch, norm partials and sums, metrics, transfer.
  std::uint64_t fixed_device = 0, fixed_host = 0;
  std::vector<int> runs_of_work;  // of a step, by index into Program::works

 private:
  void outline_state(const Program& program);
  void add_pieces(const Program& program, int tiles_per_piece, int slices_per_piece);
  static UpdatePiece piece_of(const Program& program, int block, const std::vector<int>& places);
  static void add_place(const Program& program, int place, UpdatePiece& piece);
  void order_pieces(const Program& program);
  void outline_blocks(const Program& program);
  void outline_continued_sums(const Program& program);
  void outline_classes(const Program& program);
  void outline_boundaries(const Program& program);
  void outline_passing(const Program& program);
  void outline_fixed(const Program& program);
  void outline_metrics(const Program& program);
  void outline_work(const Program& program);
  std::vector<int> count_fetches(int weight_slots) const;
  BoundaryDemand count_boundaries(const Policy& policy) const;

  std::vector<int> weight_reads_;  // blocks, in order of reading
  // Remembered, as many policies agree in them.
  mutable std::map<int, std::vector<int>> fetches_;
  mutable std::map<std::array<double, 4>, BoundaryDemand> boundary_demands_;
};

}  // namespace strata
