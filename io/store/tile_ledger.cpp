#include "io/store/tile_ledger.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {

TileLedger::TileLedger(const StoreDescription& store, Manifest committed)
    : store_(store), committed_(std::move(committed)), written_(store.tiles.size()) {
  ensure(committed_.tiles.size() == written_.size());
}

std::uint8_t TileLedger::free_place(std::size_t tile) const {
  return committed_.tiles[tile].place == 0 ? 1 : 0;
}

TileLedger::Present TileLedger::present(std::size_t tile) const {
  const std::lock_guard lock(mutex_);
  const Written& written = written_[tile];
  const TileRecord& committed = committed_.tiles[tile];
  if (written.state != State::never_written)
    return {written.state, {free_place(tile), written.checksum}};
  return {committed.written() ? State::whole : State::never_written, committed};
}

std::uint8_t TileLedger::place_to_write(std::size_t tile) const {
  const std::lock_guard lock(mutex_);
  return free_place(tile);
}

void TileLedger::begin_write(std::size_t tile) {
  const std::lock_guard lock(mutex_);
  written_[tile] = {State::torn, 0};
}

void TileLedger::end_write(std::size_t tile, std::uint64_t checksum) {
  const std::lock_guard lock(mutex_);
  written_[tile] = {State::whole, checksum};
}

void TileLedger::distrust(std::size_t drive) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < written_.size(); ++i) {
    const bool here = static_cast<std::size_t>(store_.tiles[i].tile.drive) == drive;
    if (here && written_[i].state != State::never_written) written_[i].state = State::torn;
  }
}

std::vector<std::size_t> TileLedger::drives_written() const {
  const std::lock_guard lock(mutex_);
  std::set<std::size_t> drives;
  for (std::size_t i = 0; i < written_.size(); ++i) {
    if (written_[i].state != State::never_written)
      drives.insert(static_cast<std::size_t>(store_.tiles[i].tile.drive));
  }
  return {drives.begin(), drives.end()};
}

std::optional<std::size_t> TileLedger::torn_tile() const {
  const std::lock_guard lock(mutex_);
  const auto torn = std::ranges::find(written_, State::torn, &Written::state);
  if (torn == written_.end()) return std::nullopt;
  return static_cast<std::size_t>(torn - written_.begin());
}

Manifest TileLedger::next(std::uint64_t version, const std::string& note) const {
  const std::lock_guard lock(mutex_);
  Manifest manifest = committed_;
  manifest.version = version;
  manifest.note = note;
  for (std::size_t i = 0; i < written_.size(); ++i) {
    if (written_[i].state == State::whole)
      manifest.tiles[i] = {free_place(i), written_[i].checksum};
  }
  return manifest;
}

void TileLedger::commit(Manifest manifest) {
  const std::lock_guard lock(mutex_);
  committed_ = std::move(manifest);
  written_.assign(written_.size(), {});
}

std::optional<std::uint64_t> TileLedger::version() const {
  const std::lock_guard lock(mutex_);
  return committed_.version;
}

std::string TileLedger::note() const {
  const std::lock_guard lock(mutex_);
  return committed_.note;
}

}  // namespace strata
