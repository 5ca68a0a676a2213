#pragma once
// Measures every pattern at a grid of block sizes and depths, in rounds, within a budget of time,
// and chooses the cheapest that is as fast as any. Thread contract: one thread.

#include <cstdint>
#include <span>
#include <vector>

#include "bench_session.hpp"
#include "strata/measure/nvme_report.hpp"

namespace strata {

double block_sweep_seconds(const BenchSession& session);
std::vector<NvmeResult> run_block_sweep(const BenchSession& session);

struct BlockChoice {
  std::uint64_t block_bytes = 0;
  int depth = 0;
};
// The fewest bytes in flight whose median is within 2 % of the best: of the mixed pattern, else of
// reading and writing one after the other. `sweep` is not empty.
BlockChoice choose_block(std::span<const NvmeResult> sweep);

}  // namespace strata
