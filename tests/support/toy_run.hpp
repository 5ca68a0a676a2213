#pragma once
// Trains a toy Program through a Plan, or plainly without one; both give the losses, norms and
// final weights to compare.

#include <cstdint>
#include <memory>
#include <vector>

#include "strata/io/io_engine.hpp"
#include "strata/plan/plan.hpp"
#include "strata/runtime/executor.hpp"

namespace strata::testing {

struct Trajectory {
  std::vector<double> losses, norms;
  std::vector<double> scores;                   // of the "eval" sequence, run in between
  std::vector<std::vector<std::byte>> weights;  // per block
  bool operator==(const Trajectory&) const = default;
};

struct ToyRunOptions {
  int steps = 20;
  float max_grad_norm = 0.5f;
  int evaluate_every = 7;
  int evaluations = 1;  // in a row
  ExecutorOptions executor = {};
};

// `engine` serves the NVMe tier, every read verified; null when the plan uses none.
Trajectory run_planned(const Program& program, const Plan& plan, IoEngine* engine,
                       const ToyRunOptions& options);
// The same steps on plain vectors, one segment after the other.
Trajectory run_plainly(const Program& program, const ToyRunOptions& options);

}  // namespace strata::testing
