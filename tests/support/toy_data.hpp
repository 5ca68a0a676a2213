#pragma once
// What toy runs start from and train on: the same values for one rank of several and for one that
// does the work of all.

#include <cstdint>
#include <vector>

#include "strata/program/step.hpp"
#include "support/toy_run.hpp"

namespace strata::testing {

bool is_toy_state(Role role);  // what a run starts with

// Of an element of the block's vector. NaN behind its end, so that it shows when padding counts.
float initial_value(const Program& program, const Shard& shard, std::int64_t element);

// Inputs and arguments of one step of one rank. Ranks take turns: micro-batch i of rank r is number
// i x world + r of all.
class ToyStep {
 public:
  void fill(const Program& program, std::int64_t step, const ToyRunOptions& options);
  const StepArgs& args() const { return args_; }

 private:
  std::vector<std::vector<std::int32_t>> data_;
  StepArgs args_;
};

}  // namespace strata::testing
