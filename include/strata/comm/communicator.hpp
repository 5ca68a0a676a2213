#pragma once
// A Communicator carries collectives of views among ranks, in one fixed order of summation (rank 0,
// 1, 2 ...), so results do not depend on arrival. Every rank must call the same collectives in the
// same order. Thread contract: one thread (the comm lane) per rank. A failed or missing rank ends
// every wait with an Error that names the rank and the collective.

#include <cstdint>
#include <memory>
#include <vector>

#include "strata/core/tensor_view.hpp"

namespace strata {

class Stream;

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;
  // `gathered` has world x shard.count() elements.
  virtual void all_gather(TensorView shard, TensorView gathered, Stream&) = 0;
  // `shard` = sum over ranks of their `full` at this rank's part. f32.
  virtual void reduce_scatter(TensorView full, TensorView shard, Stream&) = 0;
  virtual void all_reduce(TensorView values, Stream&) = 0;  // f32 or f64, in place
  virtual void broadcast(TensorView values, int root, Stream&) = 0;
  virtual void barrier(Stream&) = 0;
};

// One communicator per rank, for threads of this process.
std::vector<std::unique_ptr<Communicator>> make_local_communicators(int world,
                                                                    double timeout_s = 1800);

}  // namespace strata
