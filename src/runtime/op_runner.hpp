#pragma once
// Carries out one op of a Plan. Addresses and views are computed once, when the Plan is loaded.
// Thread contract: ops of one lane from one thread at a time; different lanes concurrently.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/step_state.hpp"
#include "strata/runtime/executor.hpp"
#include "strata/runtime/nvme_tiles.hpp"

namespace strata {

class OpRunner {
 public:
  OpRunner(const Program& program, const Plan& plan, const ExecutorParts& parts, Poison poison);

  // Runs the op and returns when it is complete. Throws Error with failure().
  void run(const Op& op, StepState& step);
  // Starts a read or write; `completion` is told when it is complete.
  void start_transfer(const Op& op, StepState& step, IoCompletion& completion);
  void cancel_transfer(const IoCompletion& completion) { parts_.store->cancel(completion); }

  // "step 3: update on lane update for 'update head tile 2', 'gradient/head' tile 2: why".
  std::string failure(const Op& op, const StepState& step, const std::string& why) const;

 private:
  struct Bound {                    // per op
    std::vector<TensorView> views;  // per operand, scratch excluded
    std::span<std::byte> scratch;
    int store_tile = -1;               // read and write
    std::span<std::byte> tile_memory;  // read and write
  };

  void carry_out(const Op& op, StepState& step);
  std::string describe(const Op& op) const;
  Bound bind(const Op& op, const Plan& plan, const NvmeTiles& nvme) const;
  void bind_transfer(const Op& op, const Plan& plan, const NvmeTiles& nvme, Bound& bound) const;
  TensorView view(const Operand& operand) const;
  std::byte* address(const Region& region) const;
  const Bound& bound(const Op& op, const StepState& step) const {
    return bound_[step.schedule][op.id.index()];
  }
  void poison(const Op& op) const;
  Kernels& kernels(const Op& op) const;
  Stream& stream(const Op& op) const { return *streams_[static_cast<std::size_t>(op.lane)]; }

  void feed(const Op& op, StepState& step);
  void copy(const Op& op);
  void norm(const Op& op, const Bound& bound, StepState& step);
  void update(const Op& op, const Bound& bound, StepState& step);
  UpdateScalars gate(const Op& op, const Bound& bound) const;
  void report(const Op& op, const Bound& bound, StepState& step);

  const Program& program_;
  ExecutorParts parts_;
  Poison poison_;
  std::vector<std::vector<Bound>> bound_;  // [schedule][op]
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace strata
