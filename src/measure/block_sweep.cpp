#include "block_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::array grid_blocks = {256 * KiB, 1 * MiB, 4 * MiB, 16 * MiB};
constexpr std::array grid_depths = {1, 4, 8, 32};
constexpr int num_rounds_max = 3;
constexpr double sample_s_min = 0.15;
constexpr double as_fast_as = 0.98;

// Those whose blocks in flight fit the memory; else what was asked for.
std::vector<BlockChoice> grid_of(const BenchSession& session) {
  std::vector<BlockChoice> grid;
  const std::uint64_t memory = session.memory.size() / session.sites.size();
  for (const std::uint64_t block : grid_blocks) {
    for (const int depth : grid_depths) {
      if (block > session.file_bytes || block * static_cast<std::uint64_t>(depth) > memory)
        continue;
      grid.push_back({block, depth});
    }
  }
  if (grid.empty()) grid.push_back({session.options.block_bytes, session.options.depth});
  return grid;
}

// How the budget is spent: rounds of every point, and one pass of the same samples for latencies.
struct SweepPlan {
  int num_rounds = 1;
  double sample_s = 0;
};

SweepPlan plan_sweep(const BenchSession& session, std::size_t num_points) {
  const double budget_s = session.options.sweep_s / static_cast<double>(num_points);
  const double passes = std::clamp(std::floor(budget_s / sample_s_min), 2.0, num_rounds_max + 1.0);
  return {static_cast<int>(passes) - 1,
          std::min(session.options.duration_s, std::max(sample_s_min, budget_s / passes))};
}

std::vector<NvmeResult> empty_results(const BenchSession& session,
                                      const std::vector<BlockChoice>& grid) {
  std::vector<NvmeResult> results;
  for (const BlockChoice& point : grid) {
    for (const NvmePattern pattern : session.options.patterns) {
      NvmeResult result;
      result.pattern = pattern;
      result.target = session.everything().name;
      result.block_bytes = point.block_bytes;
      result.depth = point.depth;
      results.push_back(std::move(result));
    }
  }
  return results;
}

class SweepRound {
 public:
  SweepRound(const BenchSession& session, const SweepPlan& plan, int round)
      : session_(session), target_(session.everything()), plan_(plan), round_(round) {}

  void measure(NvmeResult& result) {
    use_rig(result);
    const LoadSample sample = run(result, BlocksAhead::queued, "rate");
    result.bytes_per_s.values.push_back(sample.bytes_per_s());
    result.cpu_seconds_per_gb.values.push_back(sample.cpu_seconds_per_gb());
    if (round_ > 0) return;
    result.latency = latency_of(run(result, BlocksAhead::none, "latency").latencies_us);
  }

 private:
  // Neighbours of one block and depth share a rig.
  void use_rig(const NvmeResult& result) {
    if (rig_ && rig_->options().block_bytes == result.block_bytes &&
        rig_->options().depth == result.depth) {
      return;
    }
    rig_.reset();
    rig_ = session_.make_rig(result.block_bytes, result.depth);
  }
  LoadSample run(const NvmeResult& result, BlocksAhead ahead, std::string_view what) {
    session_.progress.begin(fmt::format("sweep {} of {}: {} x {}, {}, {}", round_ + 1,
                                        plan_.num_rounds, format_bytes(result.block_bytes),
                                        result.depth, nvme_pattern_name(result.pattern), what),
                            plan_.sample_s);
    return rig_->measure(target_.sites, result.pattern, ahead, plan_.sample_s, session_.tick())
        .sample;
  }

  const BenchSession& session_;
  const BenchTarget target_;
  const SweepPlan plan_;
  const int round_;
  std::unique_ptr<BenchRig> rig_;
};

using PointKey = std::tuple<std::uint64_t, std::uint64_t, int>;  // bytes in flight, block, depth

PointKey key_of(const NvmeResult& result) {
  return {result.block_bytes * static_cast<std::uint64_t>(result.depth), result.block_bytes,
          result.depth};
}

// One number per point, larger is better.
std::map<PointKey, double> scores(std::span<const NvmeResult> sweep) {
  const bool mixed =
      std::ranges::find(sweep, NvmePattern::mixed, &NvmeResult::pattern) != sweep.end();
  std::map<PointKey, double> seconds_per_byte;
  for (const NvmeResult& result : sweep) {
    if (mixed && result.pattern != NvmePattern::mixed) continue;
    seconds_per_byte[key_of(result)] += 1 / std::max(result.bytes_per_s.median(), 1e-9);
  }
  std::map<PointKey, double> scores;
  for (const auto& [key, cost] : seconds_per_byte) scores[key] = 1 / cost;
  return scores;
}

}  // namespace

double block_sweep_seconds(const BenchSession& session) {
  const auto num_points = grid_of(session).size() * session.options.patterns.size();
  const SweepPlan plan = plan_sweep(session, num_points);
  return plan.sample_s * static_cast<double>(num_points) * (plan.num_rounds + 1);
}

std::vector<NvmeResult> run_block_sweep(const BenchSession& session) {
  std::vector<NvmeResult> results = empty_results(session, grid_of(session));
  const SweepPlan plan = plan_sweep(session, results.size());
  for (int round = 0; round < plan.num_rounds; ++round) {
    SweepRound measuring(session, plan, round);
    for (NvmeResult& result : results) measuring.measure(result);
  }
  return results;
}

BlockChoice choose_block(std::span<const NvmeResult> sweep) {
  ensure(!sweep.empty());
  const auto score_of = scores(sweep);
  double best = 0;
  for (const auto& [key, score] : score_of) best = std::max(best, score);
  const auto chosen = std::ranges::find_if(
      score_of, [&](const auto& entry) { return entry.second >= as_fast_as * best; });
  return {std::get<1>(chosen->first), std::get<2>(chosen->first)};
}

}  // namespace strata
