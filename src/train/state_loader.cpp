#include "train/state_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <future>
#include <vector>

#include "strata/core/error.hpp"
#include "train/state_pieces.hpp"
#include "train/weight_elements.hpp"

namespace strata {
namespace {

std::string describe(const StateVector& vector) {
  return fmt::format("{} of {} elements in {}", state_vector_name(vector), vector.count,
                     dtype_name(vector.dtype));
}

// A part of one vector, and the shards that hold it on this rank.
struct LoadedSpan {
  ShardId shard, weight;  // the weight is a master's; invalid: none
  StateSpan span;
  std::vector<std::byte> elements;
};

// Reads run ahead of the tiles that they fill.
class StateLoader {
 public:
  StateLoader(const PlannedRun& run, StateAccess& state, const CheckpointReader& checkpoint)
      : program_(run.program), state_(state), checkpoint_(checkpoint) {}

  void load() {
    for (std::size_t i = 0; i < checkpoint_.info().vectors.size(); ++i) load(static_cast<int>(i));
    while (!reads_.empty()) store_next();
    state_.finish();
  }

 private:
  void load(int index) {
    const StateVector& vector = checkpoint_.info().vectors[static_cast<std::size_t>(index)];
    const ShardId shard = state_shard(program_, vector.role, vector.block);
    const ShardId weight =
        vector.role == Role::master ? state_shard(program_, Role::weight, vector.block) : ShardId{};
    for (const StateSpan& span : state_spans(program_, shard))
      if (holds(shard, span) || holds(weight, span)) request(index, {shard, weight, span, {}});
  }
  bool holds(ShardId shard, const StateSpan& span) const {
    return shard.valid() && program_.tile_at(shard, span.place) >= 0;
  }

  void request(int vector, LoadedSpan loaded) {
    if (reads_.size() >= state_reads_ahead) store_next();
    reads_.push_back(std::async(std::launch::async, [this, vector, loaded]() mutable {
      const StateVector& whole = checkpoint_.info().vectors[static_cast<std::size_t>(vector)];
      const StateSpan& span = loaded.span;
      loaded.elements.resize(state_vector_bytes({whole.role, "", whole.dtype, span.count}));
      checkpoint_.read(vector, span.first, span.count, loaded.elements);
      return std::move(loaded);
    }));
  }

  void store_next() {
    const LoadedSpan loaded = reads_.front().get();
    reads_.pop_front();
    store(loaded.shard, loaded);
    store(loaded.weight, loaded);
  }

  void store(ShardId shard, const LoadedSpan& loaded) {
    if (!holds(shard, loaded.span)) return;
    const int tile = program_.tile_at(shard, loaded.span.place);
    const Shard& target = program_.shard(shard);
    state_.write_behind(shard, tile, [&](std::span<std::byte> bytes) {
      if (target.role != Role::master && target.role != Role::weight)
        return moment_from_vector(target.dtype, loaded.span.count, loaded.elements,
                                  program_.tile_count(shard, tile), bytes);
      std::ranges::fill(bytes, std::byte{0});
      const std::span<const float> values(reinterpret_cast<const float*>(loaded.elements.data()),
                                          static_cast<std::size_t>(loaded.span.count));
      store_elements(values, target.dtype, bytes.data());
    });
  }

  const Program& program_;
  StateAccess& state_;
  const CheckpointReader& checkpoint_;
  std::deque<std::future<LoadedSpan>> reads_;
};

}  // namespace

void check_state(const PlannedRun& run, const CheckpointInfo& checkpoint) {
  std::vector<StateVector> wanted = state_vectors(run), found = checkpoint.vectors;
  const auto by_name = [](const StateVector& vector) { return state_vector_name(vector); };
  std::ranges::sort(wanted, {}, by_name);
  std::ranges::sort(found, {}, by_name);
  const auto [want, have] = std::ranges::mismatch(wanted, found);
  if (want == wanted.end() && have == found.end()) return;
  throw ConfigError(
      fmt::format("{} does not fit this run: it has {} where the run has {}. Resume with the same "
                  "model, optim, "
                  "optimizer_moments and sgd_momentum",
                  checkpoint.path, have == found.end() ? "nothing" : describe(*have),
                  want == wanted.end() ? "nothing" : describe(*want)));
}

// What is read ahead: a pipe's chunks, and the elements that come out of it.
std::uint64_t resume_buffer_bytes(const Program& program) {
  const std::uint64_t span = static_cast<std::uint64_t>(program.tile_elements) * sizeof(float);
  return state_reads_ahead * (checkpoint_read_memory_bytes + span);
}

void load_state(const PlannedRun& run, StateAccess& state, const CheckpointReader& checkpoint) {
  check_state(run, checkpoint.info());
  StateLoader(run, state, checkpoint).load();
}

}  // namespace strata
