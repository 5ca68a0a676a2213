#include "io/store/drive_store.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "io/common/awaited_transfer.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr int hash_threads_max = 64;
constexpr const char* in_doubt =
    "it is not known whether the last commit took effect: the store takes no more writes until it "
    "is opened again";

std::size_t index(int tile) { return static_cast<std::size_t>(tile); }

}  // namespace

void check_store_options(const StoreOptions& options, Checksums checksums) {
  if (options.verify == Verify::reads && checksums == Checksums::off)
    throw ConfigError("a store without checksums cannot verify reads: turn checksums on");
  if (options.hash_threads < 1 || options.hash_threads > hash_threads_max)
    throw ConfigError(fmt::format("a store has 1 to {} hash threads, not {}", hash_threads_max,
                                  options.hash_threads));
}

DriveStore::DriveStore(IoEngine& engine, StoreState state, const StoreOptions& options)
    : engine_(engine),
      description_(std::move(state.description)),
      verify_(options.verify),
      parts_(std::move(state.parts)),
      ledger_(description_, std::move(state.committed)),
      slot_(state.slot) {
  for (int i = 0; i < num_tiles(); ++i) indices_.emplace(tile(i).name, i);
  if (description_.checksums == Checksums::on)
    hashed_ =
        std::make_unique<HashedTransfers>(engine_, description_, ledger_, options.hash_threads);
}

const TileExtent& DriveStore::extent(int tile) const {
  ensure(tile >= 0 && tile < num_tiles());
  return description_.tiles[index(tile)];
}

std::optional<int> DriveStore::find(const std::string& name) const {
  const auto found = indices_.find(name);
  return found == indices_.end() ? std::nullopt : std::optional(found->second);
}

std::uint64_t DriveStore::padded_bytes(int tile) const {
  ensure(tile >= 0 && tile < num_tiles());
  return description_.padded_bytes(index(tile));
}

IoRequest DriveStore::request(IoOp op, int tile, std::uint8_t place,
                              std::span<std::byte> memory) const {
  ensure(memory.size() == padded_bytes(tile));
  const TileExtent& at = extent(tile);
  return {.op = op,
          .file = parts_[index(at.tile.drive)].tiles(),
          .offset = at.offsets[place],
          .data = memory.data(),
          .bytes = memory.size()};
}

void DriveStore::submit(IoOp op, int tile, std::span<std::byte> memory, IoPriority priority,
                        IoCompletion& completion) {
  IoRequest one = request(op, tile, 0, memory);
  one.priority = priority;
  one.completion = &completion;
  if (hashed_ == nullptr) return engine_.submit({&one, 1});
  op == IoOp::write ? submit_write(tile, one) : submit_read(tile, one);
}

void DriveStore::submit_write(int tile, IoRequest request) {
  if (is_in_doubt_)
    return hashed_->refuse(
        request, EIO,
        fmt::format("cannot write tile '{}' of {}: {}", extent(tile).tile.name, path(), in_doubt));
  request.offset = extent(tile).offsets[ledger_.place_to_write(index(tile))];
  hashed_->write(index(tile), request);
}

void DriveStore::submit_read(int tile, IoRequest request) {
  const auto [state, record] = ledger_.present(index(tile));
  if (state != TileLedger::State::whole) return refuse_read(request, tile, state);
  request.offset = extent(tile).offsets[record.place];
  if (verify_ != Verify::reads) return engine_.submit({&request, 1});
  hashed_->read(index(tile), request, record.checksum);
}

void DriveStore::refuse_read(const IoRequest& request, int tile, TileLedger::State state) {
  const std::string_view reason = state == TileLedger::State::never_written
                                      ? "nothing was ever written to it"
                                      : "its last write failed or was not made durable";
  hashed_->refuse(request, ENODATA,
                  fmt::format("cannot read tile '{}' of {}: {}", extent(tile).tile.name,
                              parts_[index(extent(tile).tile.drive)].path(), reason));
}

std::size_t DriveStore::cancel(const IoCompletion& completion) {
  return engine_.cancel(completion) + (hashed_ == nullptr ? 0 : hashed_->cancel(completion));
}

void DriveStore::commit(std::uint64_t version, const std::string& note) {
  check_commit(version, note);
  flush_written_drives();
  publish(ledger_.next(version, note));
}

void DriveStore::check_commit(std::uint64_t version, const std::string& note) const {
  ensure(description_.kind == StoreKind::versioned);
  ensure(hashed_->num_writes() == 0);
  const auto refuse = [&](const std::string& reason) {
    throw Error(fmt::format("cannot commit version {} of {}: {}", version, path(), reason));
  };
  if (is_in_doubt_) refuse(in_doubt);
  const auto last = ledger_.version();
  if (last && version <= *last) refuse(fmt::format("version {} is committed already", *last));
  if (note.size() > Manifest::note_bytes_max)
    refuse(fmt::format("its note has {} bytes; at most {} are kept", note.size(),
                       Manifest::note_bytes_max));
  if (const auto torn = ledger_.torn_tile())
    refuse(fmt::format("the last write of tile '{}' failed or was not made durable: write it again",
                       description_.tiles[*torn].tile.name));
}

// After a failed flush nobody knows what became of the bytes, and the next one may say that all is
// well: they have to be written again.
void DriveStore::flush_written_drives() {
  for (std::size_t drive : ledger_.drives_written()) {
    try {
      engine_.sync(parts_[drive].tiles());
    } catch (...) {
      ledger_.distrust(drive);
      throw;
    }
  }
}

void DriveStore::publish(const Manifest& manifest) {
  FileSystem& files = engine_.file_system();
  const StorePart& first = parts_.front();
  const std::size_t older = 1 - slot_;
  files.write_file(first.file(PartFiles::manifest_new), encode(manifest));
  is_in_doubt_ = true;
  files.rename(first.file(PartFiles::manifest_new), first.file(PartFiles::manifests[older]));
  files.sync_directory(first.path());
  is_in_doubt_ = false;
  slot_ = older;
  ledger_.commit(manifest);
}

void ShardStore::transfer(IoOp op, int tile, std::span<std::byte> memory) {
  AwaitedTransfer awaited;
  submit(op, tile, memory, IoPriority::now, awaited);
  const IoResult result = awaited.wait();
  if (!result.ok()) throw Error(result.message);
}

void DriveStore::discard() {
  for (StorePart& part : parts_) part.discard();
}

std::uint64_t DriveStore::allocated_bytes() const {
  std::uint64_t bytes = 0;
  for (const StorePart& part : parts_) bytes += engine_.info(part.tiles()).allocated_bytes;
  return bytes;
}

std::string DriveStore::path() const { return parts_.empty() ? "" : parts_.front().path(); }

std::string DriveStore::describe() const {
  std::string text;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (i > 0) text += '\n';
    text += parts_[i].describe(description_.drives[i].bytes);
  }
  return text;
}

}  // namespace strata
