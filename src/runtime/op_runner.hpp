#pragma once
// Carries out one op of a Plan. Thread contract: ops of one lane from one thread at a time;
// different lanes concurrently; abort_ranks() from any thread. A thread that runs, issues or awaits
// ops has called device().use_on_this_thread() before: else its first call opens device 0.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/bound_ops.hpp"
#include "runtime/collectives.hpp"
#include "runtime/step_state.hpp"
#include "strata/runtime/executor.hpp"

namespace strata {

class OpRunner {
 public:
  OpRunner(const Program& program, const Plan& plan, const ExecutorParts& parts,
           const ExecutorOptions& options);
  ~OpRunner() { drain_streams(); }

  // Runs the op and returns when it is complete.
  void run(const Op& op, StepState& step);
  // Whether the op's work is its stream's, and may be issued before what it waits for is complete.
  bool is_asynchronous(const Op& op) const;
  // Whether issuing it looks at host memory, which must then be right.
  bool looks_at_host(const Op& op) const;
  // Gives the work of such an op to its stream.
  void issue(const Op& op, StepState& step);
  // Called once the stream is done with an op. Throws when that was not to the op's end: a
  // collective that the job's failure cut short.
  void confirm(const Op& op) const;
  Stream& stream(const Op& op) const { return *streams_[static_cast<std::size_t>(op.lane)]; }
  Device& device() const { return *parts_.device; }
  // Returns when nothing is left to do on any stream, or nothing ever will be done.
  void drain_streams() noexcept;
  // Starts a read or write; `completion` is told when it is complete.
  void start_transfer(const Op& op, StepState& step, IoCompletion& completion);
  void cancel_transfer(const IoCompletion& completion) { parts_.store->cancel(completion); }

  // Tells the other ranks why this one does not go on.
  void abort_ranks(const std::string& failure) noexcept { collectives_.abort(failure); }

  // "step 3: update on lane update for 'update head tile 2', 'gradient/head' tile 2: why".
  std::string failure(const Op& op, const StepState& step, const std::string& why) const;
  std::string describe(const Op& op) const;  // "update on lane update for ... tile 2"

 private:
  void carry_out(const Op& op, StepState& step);
  const BoundOp& bound(const Op& op, const StepState& step) const {
    return bound_.op(step.schedule, op.id);
  }
  void begin(const Op& op) const;
  void fill(const Op& op, const Region& region) const;
  void poison(const Op& op, std::span<const Operand> others, const Region& region) const;
  Kernels& kernels(const Op& op) const;

  void feed(const Op& op, StepState& step);
  void copy(const Op& op);
  void norm(const BoundOp& bound, StepState& step);
  void update(const Op& op, const BoundOp& bound, StepState& step);
  UpdateScalars gate(const Op& op, const BoundOp& bound, const StepState& step) const;
  void save(const Op& op, const BoundOp& bound);
  void report(const Op& op, const BoundOp& bound, StepState& step);

  const Program& program_;
  ExecutorParts parts_;
  const Poison poison_;
  const std::function<void(const Op&)> before_op_;
  const BoundOps bound_;
  Collectives collectives_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace strata
