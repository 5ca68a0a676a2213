#pragma once
// What tests of the executor make of toys, and hold two runs of one against each other with.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "support/policies.hpp"
#include "support/toy_program.hpp"
#include "support/toy_run.hpp"

namespace strata::testing {

// Every kind of use, blocks of several tiles of which the last is short.
inline Program small_program(int micro_batches, ToyUpdate update = ToyUpdate::produces_weight) {
  return make_toy_program({.layers = 2,
                           .micro_batches = micro_batches,
                           .layer_elements = 5000,
                           .embedding_elements = 9000,
                           .tokens = 32,
                           .update = update});
}

// Blocks of one slice that is mostly padding, and of slices of several tiles.
inline ToyShape uneven_shape(int world, int stage) {
  return {.layers = 2,
          .micro_batches = 2,
          .layer_elements = 5000,
          .embedding_elements = 37001,
          .tokens = 16,
          .world = world,
          .zero_stage = stage};
}

inline Plan verified_plan(const Program& program, const Policy& policy) {
  Plan plan = make_plan(program, roomy_limits(), policy);
  EXPECT_TRUE(verify(program, plan).empty());
  return plan;
}

// Answers late, in any order and in parts.
inline std::unique_ptr<SimEngine> sim_disk(std::uint64_t seed) {
  SimOptions options;
  options.seed = seed;
  options.latency_us_max = 10;
  options.short_transfer_probability = 0.05;
  return make_sim_engine(options);
}

inline void expect_same(const Trajectory& expected, const Trajectory& got,
                        const std::string& what) {
  EXPECT_EQ(expected.losses, got.losses) << what;
  EXPECT_EQ(expected.micro_batch_losses, got.micro_batch_losses) << what;
  EXPECT_EQ(expected.norms, got.norms) << what;
  EXPECT_EQ(expected.scores, got.scores) << what;
  EXPECT_TRUE(expected.weights == got.weights) << what << ": weights differ";
}

}  // namespace strata::testing
