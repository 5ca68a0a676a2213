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

constexpr std::size_t reads_ahead = 3;

std::string describe(const StateVector& vector) {
  return fmt::format("{} of {} elements in {}", state_vector_name(vector), vector.count,
                     dtype_name(vector.dtype));
}

// What this rank needs of one vector's part, and the elements.
struct LoadedSpan {
  int vector = 0;
  StateSpan span;
  std::vector<std::byte> elements;
};

// Reads run ahead of the tiles that they fill.
class StateLoader {
 public:
  StateLoader(const PlannedRun& run, StateAccess& state, const CheckpointReader& checkpoint)
      : run_(run), program_(run.program), state_(state), checkpoint_(checkpoint) {}

  void load() {
    const auto& vectors = checkpoint_.info().vectors;
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      for (const StateSpan& span : state_spans(program_, state_shard(run_, vectors[i])))
        if (needs(vectors[i], span)) request(static_cast<int>(i), span);
    }
    while (!reads_.empty()) store_next();
  }

 private:
  ShardId weight_of(const StateVector& vector) const {
    if (vector.role != Role::master) return {};
    return state_shard(run_, {Role::weight, vector.block, DType::bf16, 0});
  }
  bool holds(ShardId shard, const StateSpan& span) const {
    return shard.valid() && program_.tile_at(shard, span.place) >= 0;
  }
  bool needs(const StateVector& vector, const StateSpan& span) const {
    return holds(state_shard(run_, vector), span) || holds(weight_of(vector), span);
  }

  void request(int vector, const StateSpan& span) {
    if (reads_.size() >= reads_ahead) store_next();
    reads_.push_back(std::async(std::launch::async, [this, vector, span] {
      const StateVector& whole = checkpoint_.info().vectors[static_cast<std::size_t>(vector)];
      LoadedSpan loaded{vector, span, {}};
      loaded.elements.resize(state_vector_bytes({whole.role, "", whole.dtype, span.count}));
      checkpoint_.read(vector, span.first, span.count, loaded.elements);
      return loaded;
    }));
  }

  void store_next() {
    const LoadedSpan loaded = reads_.front().get();
    reads_.pop_front();
    const StateVector& vector = checkpoint_.info().vectors[static_cast<std::size_t>(loaded.vector)];
    store(state_shard(run_, vector), loaded);
    store(weight_of(vector), loaded);
  }

  void store(ShardId shard, const LoadedSpan& loaded) {
    if (!holds(shard, loaded.span)) return;
    const int tile = program_.tile_at(shard, loaded.span.place);
    const Shard& target = program_.shard(shard);
    state_.write(shard, tile, [&](std::span<std::byte> bytes) {
      if (target.role != Role::master && target.role != Role::weight)
        return moment_from_vector(target.dtype, loaded.span.count, loaded.elements,
                                  program_.tile_count(shard, tile), bytes);
      std::ranges::fill(bytes, std::byte{0});
      const std::span<const float> values(reinterpret_cast<const float*>(loaded.elements.data()),
                                          static_cast<std::size_t>(loaded.span.count));
      store_elements(values, target.dtype, bytes.data());
    });
  }

  const PlannedRun& run_;
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

void load_state(const PlannedRun& run, StateAccess& state, const CheckpointReader& checkpoint) {
  check_state(run, checkpoint.info());
  StateLoader(run, state, checkpoint).load();
}

}  // namespace strata
