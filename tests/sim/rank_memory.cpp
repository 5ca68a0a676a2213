#include "sim/rank_memory.hpp"

#include <memory>
#include <numeric>
#include <optional>

#include "strata/core/error.hpp"
#include "support/slab_watch.hpp"

namespace strata::testing {
namespace {

std::optional<StatePart> part_of(Role role) {
  switch (role) {
    case Role::weight:
      return StatePart::weight;
    case Role::gradient:
      return StatePart::gradient;
    case Role::master:
      return StatePart::master;
    case Role::moment1:
    case Role::moment2:
      return StatePart::moments;
    default:
      return {};
  }
}

constexpr std::int64_t io_alignment = 4096;

std::int64_t rounded_up(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

std::int64_t held_elements(std::int64_t count, int world, bool sliced) {
  if (world == 1) return count;
  const std::int64_t slice = rounded_up((count + world - 1) / world, norm_chunk_elements);
  return sliced ? slice : slice * world;
}

MeasuredState measure(const PlannedRun& run, const SlabWatch& watch) {
  MeasuredState state;
  for (const Shard& shard : run.program.shards)
    if (const auto part = part_of(shard.role))
      for (const Region& home : run.plan.homes[shard.id.index()]) {
        if (home.tier == Tier::nvme) continue;
        state.homes[*part] += home.bytes;
        state.touched[*part] += watch.resident_bytes(home);
      }
  return state;
}

}  // namespace

std::string_view state_part_name(StatePart part) {
  constexpr std::array<std::string_view, state_parts.size()> names = {"weight", "gradient",
                                                                      "master", "moments"};
  return names[static_cast<std::size_t>(part)];
}

std::uint64_t StateBytes::total() const {
  return std::accumulate(of.begin(), of.end(), std::uint64_t{0});
}

int slicing_stage(StatePart part) {
  switch (part) {
    case StatePart::weight:
      return 3;
    case StatePart::gradient:
      return 2;
    case StatePart::master:
    case StatePart::moments:
      return 1;
  }
  return 0;
}

StateBytes formula_bytes(const PlannedRun& run) {
  StateBytes bytes;
  for (const Shard& shard : run.program.shards)
    if (const auto part = part_of(shard.role)) {
      const BlockSpec& block = run.model->blocks()[static_cast<std::size_t>(shard.block)];
      const bool sliced = run.program.zero_stage >= slicing_stage(*part);
      const std::int64_t elements = held_elements(block.count, run.program.world, sliced);
      bytes[*part] += static_cast<std::uint64_t>(
          rounded_up(storage_bytes(shard.dtype, elements), io_alignment));
    }
  return bytes;
}

StateBytes planned_bytes(const Plan& plan) {
  StateBytes bytes;
  for (const Usage& usage : plan.usage)
    if (const auto part = usage.is_home ? part_of(usage.role) : std::nullopt)
      bytes[*part] += usage.bytes[0] + usage.bytes[1] + usage.bytes[2];
  return bytes;
}

MeasuredRanks measure_ranks(const RunConfig& config) {
  const auto world = static_cast<std::size_t>(config.world);
  std::vector<SlabWatch> watches(world);
  MeasuredRanks measured;
  measured.states.resize(world);
  RanksOptions options;
  options.change = [&](RankSetup& setup) {
    const auto rank = static_cast<std::size_t>(setup.rank);
    setup.make_device = [&watch = watches[rank]](const Plan& plan) {
      return watch.watch(make_run_device(plan));
    };
    setup.trained = [&, rank](Session& session) {
      measured.states[rank] = measure(session.run(), watches[rank]);
    };
  };
  measured.outcome = train_on_ranks(config, options);
  return measured;
}

}  // namespace strata::testing
