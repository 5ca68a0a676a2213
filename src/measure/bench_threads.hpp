#pragma once
// Threads of a measurement, placed as a run places those of its update lane: spread over the NUMA
// nodes, bound to them. Thread contract: one thread, which counts as the first and is bound too.

#include <memory>
#include <vector>

#include "kernels/cpu/parallel.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/topology/binding.hpp"

namespace strata {

// Elements that a thread takes at a time, as the update does.
inline constexpr std::int64_t bench_chunk_elements = 64 * 1024;

class BenchThreads {
 public:
  // 0: one for each core that this process may use.
  explicit BenchThreads(int num_threads);

  int num_threads() const;
  std::unique_ptr<Kernels> make_kernels() const;
  std::unique_ptr<cpu::Parallel> make_pool() const;

 private:
  std::vector<int> threads_of_node() const;

  std::vector<NodeThreads> nodes_;
};

}  // namespace strata
