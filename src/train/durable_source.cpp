// The stores of a run's ranks as one checkpoint: what a tile holds is in its name.

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "io/store/store_reader.hpp"
#include "strata/core/error.hpp"
#include "strata/train/durable_state.hpp"
#include "train/state_loader.hpp"
#include "train/state_pieces.hpp"
#include "train/state_tiles.hpp"

namespace strata {
namespace {

constexpr std::size_t pieces_kept = 1;

// Elements of a vector, and the tile that they lie in.
struct Source {
  StateTile state;
  const StoreReader* store = nullptr;
  std::size_t tile = 0;
};

std::int64_t vector_bytes(const StateVector& vector, std::int64_t count) {
  return static_cast<std::int64_t>(
      state_vector_bytes({vector.role, vector.block, vector.dtype, count}));
}

class DurableSource final : public CheckpointReader {
 public:
  DurableSource(IoEngine& engine, const DurablePoint& point) {
    info_.path = point.describe();
    info_.note = point.note;
    check_readable_here(engine.file_system(), point.stores);
    for (int rank = 0; rank < point.stores.world; ++rank)
      add(stores_.emplace_back(engine, point.stores.path(rank), point.version));
    order();
  }

  const CheckpointInfo& info() const override { return info_; }

  std::optional<int> find(Role role, std::string_view block) const override {
    const auto found = std::ranges::find_if(info_.vectors, [&](const StateVector& vector) {
      return vector.role == role && vector.block == block;
    });
    if (found == info_.vectors.end()) return std::nullopt;
    return static_cast<int>(found - info_.vectors.begin());
  }

  const std::vector<StatePiece>& pieces() const override { return pieces_; }

  void read(int vector, std::int64_t first, std::int64_t count,
            std::span<std::byte> target) const override {
    const StateVector& facts = info_.vectors.at(static_cast<std::size_t>(vector));
    ensure(std::ssize(target) == vector_bytes(facts, count));
    for (std::size_t i = piece_at(vector, first); i < pieces_.size(); ++i) {
      const StatePiece& piece = pieces_[i];
      if (piece.vector != vector || piece.first >= first + count) break;
      const std::int64_t begin = std::max(first, piece.first);
      const std::int64_t end = std::min(first + count, piece.first + piece.count);
      const auto elements = elements_of(i);
      std::copy_n(elements->begin() + vector_bytes(facts, begin - piece.first),
                  vector_bytes(facts, end - begin),
                  target.begin() + vector_bytes(facts, begin - first));
    }
  }

  std::vector<std::string> verify(
      const std::function<void(std::uint64_t bytes)>& progress) const override {
    std::vector<std::string> wrong;
    std::uint64_t done = 0;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      try {
        done += elements_of(i)->size();
      } catch (const Error& error) {
        wrong.push_back(error.what());
      }
      if (progress) progress(done);
    }
    return wrong;
  }

 private:
  using Elements = std::shared_ptr<const std::vector<std::byte>>;

  // Whatever ranks have in common counts once.
  void add(const StoreReader& store) {
    const auto& tiles = store.description().tiles;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const auto state = parse_state_tile_name(tiles[i].tile.name);
      if (!state || state->bytes() != tiles[i].tile.bytes)
        throw FormatError(
            fmt::format("{}: '{}' is no tile of a run's state", store.path(), tiles[i].tile.name));
      if (state->count > 0) add(*state, store, i);
    }
  }
  void add(const StateTile& state, const StoreReader& store, std::size_t tile) {
    auto& sources = by_vector_[state_vector_name(state.vector)];
    if (sources.empty()) info_.vectors.push_back(state.vector);
    if (!sources.try_emplace(state.first, Source{state, &store, tile}).second) return;
    info_.bytes += static_cast<std::uint64_t>(vector_bytes(state.vector, state.count));
  }

  // The pieces, by vector and element; they must cover each vector.
  void order() {
    for (std::size_t i = 0; i < info_.vectors.size(); ++i) {
      const StateVector& vector = info_.vectors[i];
      std::int64_t next = 0;
      for (const auto& [first, source] : by_vector_.at(state_vector_name(vector))) {
        if (first != next || source.state.vector != vector) break;
        pieces_.push_back({static_cast<int>(i), first, source.state.count, 0});
        sources_.push_back(source);
        next += source.state.count;
      }
      if (next != vector.count)
        throw FormatError(fmt::format("{}: of {} there are {} elements of {}", info_.path,
                                      state_vector_name(vector), next, vector.count));
    }
  }

  std::size_t piece_at(int vector, std::int64_t element) const {
    const auto found = std::ranges::partition_point(pieces_, [&](const StatePiece& piece) {
      return std::pair(piece.vector, piece.first + piece.count) <= std::pair(vector, element);
    });
    return static_cast<std::size_t>(found - pieces_.begin());
  }

  // Neighbours are read one after the other, and often a tile more than once.
  Elements elements_of(std::size_t piece) const {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [kept, elements] : kept_)
        if (kept == piece) return elements;
    }
    Elements elements = load(sources_[piece]);
    const std::lock_guard lock(mutex_);
    kept_.emplace_back(piece, elements);
    if (kept_.size() > pieces_kept) kept_.pop_front();
    return elements;
  }

  static Elements load(const Source& source) {
    const StateTile& state = source.state;
    std::vector<std::byte> bytes(state.bytes());
    source.store->read(source.tile, bytes);
    auto elements = std::make_shared<std::vector<std::byte>>(
        static_cast<std::size_t>(vector_bytes(state.vector, state.count)));
    moment_to_vector(state.vector.dtype, state.room, bytes, state.count, *elements);
    return elements;
  }

  CheckpointInfo info_;
  std::deque<StoreReader> stores_;                                   // by rank
  std::map<std::string, std::map<std::int64_t, Source>> by_vector_;  // then by first element
  std::vector<StatePiece> pieces_;
  std::vector<Source> sources_;  // of the pieces

  mutable std::mutex mutex_;
  mutable std::deque<std::pair<std::size_t, Elements>> kept_;  // guarded by mutex_
};

}  // namespace

void check_readable_here(const FileSystem& files, const StateStores& stores) {
  for (int rank = 0; rank < stores.world; ++rank)
    if (!files.is_directory(stores.path(rank)))
      throw ConfigError(
          fmt::format("{} is on another host, and only a run as the one before can go on from "
                      "stores on several "
                      "hosts: go on as before, each rank on its host, with the same drives, ranks "
                      "and tiles and "
                      "save_strategy: steps, and change what you want from a checkpoint",
                      stores.path(rank)));
}

std::unique_ptr<CheckpointReader> open_durable_state(IoEngine& engine, const DurablePoint& point) {
  return std::make_unique<DurableSource>(engine, point);
}

// Of each tile under way: as it is read, its bytes, its elements, and what the loader has of them.
std::uint64_t durable_load_bytes(const Program& program) {
  const std::uint64_t tile = static_cast<std::uint64_t>(program.tile_elements) * sizeof(float);
  return (4 * state_reads_ahead + pieces_kept) * tile;
}

}  // namespace strata
