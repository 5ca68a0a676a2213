#include "io/store/joined_store.hpp"

#include <algorithm>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {

JoinedStore::JoinedStore(std::unique_ptr<ShardStore> versioned, std::unique_ptr<ShardStore> scratch,
                         const std::vector<bool>& has_versions)
    : versioned_(std::move(versioned)), scratch_(std::move(scratch)) {
  int next_versioned = 0, next_scratch = 0;
  for (const bool versions : has_versions)
    places_.push_back(versions ? Place{versioned_.get(), next_versioned++}
                               : Place{scratch_.get(), next_scratch++});
  ensure(next_versioned == versioned_->num_tiles() && next_scratch == scratch_->num_tiles());
}

const JoinedStore::Place& JoinedStore::place(int tile) const {
  ensure(tile >= 0 && tile < num_tiles());
  return places_[static_cast<std::size_t>(tile)];
}

const StoreTile& JoinedStore::tile(int index) const {
  const Place& at = place(index);
  return at.store->tile(at.tile);
}

std::optional<int> JoinedStore::find(const std::string& name) const {
  for (int i = 0; i < num_tiles(); ++i)
    if (tile(i).name == name) return i;
  return std::nullopt;
}

std::uint64_t JoinedStore::padded_bytes(int tile) const {
  const Place& at = place(tile);
  return at.store->padded_bytes(at.tile);
}

std::uint64_t JoinedStore::alignment() const {
  return std::max(versioned_->alignment(), scratch_->alignment());
}

void JoinedStore::submit(IoOp op, int tile, std::span<std::byte> memory, IoPriority priority,
                         IoCompletion& completion) {
  const Place& at = place(tile);
  at.store->submit(op, at.tile, memory, priority, completion);
}

std::size_t JoinedStore::cancel(const IoCompletion& completion) {
  return versioned_->cancel(completion) + scratch_->cancel(completion);
}

void JoinedStore::commit(std::uint64_t version, const std::string& note) {
  versioned_->commit(version, note);
}

std::optional<std::uint64_t> JoinedStore::committed_version() const {
  return versioned_->committed_version();
}

std::string JoinedStore::committed_note() const { return versioned_->committed_note(); }

void JoinedStore::discard() { versioned_->discard(); }

std::uint64_t JoinedStore::allocated_bytes() const {
  return versioned_->allocated_bytes() + scratch_->allocated_bytes();
}

std::string JoinedStore::path() const { return versioned_->path(); }

std::string JoinedStore::describe() const {
  return versioned_->describe() + "\n" + scratch_->describe();
}

}  // namespace strata
