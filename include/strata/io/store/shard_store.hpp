#pragma once
// A ShardStore keeps tiles on drives: the NVMe tier's memory, and the only thing on disk that
// outlives a run. Each tile has a fixed address in a preallocated file, one per drive; descriptors
// stay open. A directory of the same name on each drive holds that drive's part:
//
//   lock       held by the process that uses the store
//   store.json what the store is: id, kind, drives, and per tile name, bytes, drive and offsets
//   tiles      the tiles of this drive
//   manifest.0, manifest.1
//              first drive only, versioned stores only: the last two committed versions
//
// Two kinds. A *scratch* store is one run's memory: one version per tile, nothing is ever flushed,
// removed by the destructor and, after a crash, by the next run on the same drives. A *versioned*
// store has two places per tile: writes go to the place that the last committed version does not
// use, and commit() makes them that version. After a crash or power cut a versioned store opens at
// exactly its last committed version, with a commit that was interrupted done whole or not at all.
// Until something is written after a commit it can also be opened at the version before: several
// stores that commit one after the other, and do not go on before all have, are taken back to the
// newest version that all of them have.
//
// Checksums are XXH3-64 of a tile's bytes. Versioned stores always keep them; scratch stores when
// `Checksums::on`. What is read is compared when `Verify::reads`, and a mismatch is an error that
// names tile, path and offset. Hashing runs on threads of the store's own, never on the engine's.
//
// Formats: docs/design/storage.md. Files of a store are hostile until checked.
//
// Thread contract: constructed and destroyed by one thread; submit, transfer, and the questions
// from any. Two transfers of one tile at a time must both be reads. commit() from one thread, with
// no write in flight.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strata/io/io_engine.hpp"

namespace strata {

struct StoreTile {
  std::string name;  // "moment1/layers.3 tile 2"; unique
  std::uint64_t bytes = 0;
  int drive = 0;  // index into StoreSpec::directories
};

enum class StoreKind : std::uint8_t { scratch, versioned };
enum class Checksums : std::uint8_t { off, on };
enum class Verify : std::uint8_t {
  off,
  open,   // all tiles of a versioned store when it is opened
  reads,  // and each tile when it is read
};

struct StoreSpec {
  StoreKind kind = StoreKind::scratch;
  std::string name;  // versioned: the directory's name on each drive. scratch: chosen by the store
  std::vector<std::string> directories;  // one per drive: offload.nvme_paths
  std::vector<StoreTile> tiles;
};

struct StoreOptions {
  Checksums checksums = Checksums::off;  // scratch; versioned stores always have them
  Verify verify = Verify::off;           // `reads` needs checksums
  int hash_threads = 1;
};

class ShardStore {
 public:
  // Makes a new store: reclaims what dead runs left in `directories`, checks and reserves space,
  // writes and reads back a probe on each drive. Throws ConfigError (a directory that cannot serve,
  // too little space, a versioned store of that name exists or is in use), SystemError otherwise.
  static std::unique_ptr<ShardStore> create(IoEngine& engine, const StoreSpec& spec,
                                            const StoreOptions& options);
  // Opens the versioned store whose first drive's part is `path`, at its last committed version or
  // at `version`, which is that or the one before: then the last is forgotten. Every tile is read
  // and verified unless `options.verify` is off. Throws ConfigError when it is in use, Error that
  // says which file is damaged and how.
  static std::unique_ptr<ShardStore> open(IoEngine& engine, const std::string& path,
                                          const StoreOptions& options,
                                          std::optional<std::uint64_t> version = {});
  virtual ~ShardStore() = default;

  virtual int num_tiles() const = 0;
  virtual const StoreTile& tile(int index) const = 0;
  virtual std::optional<int> find(const std::string& name) const = 0;

  // Bytes to transfer for a tile: its bytes rounded up to alignment(). The bytes past the tile's
  // own are neither kept apart nor checked.
  virtual std::uint64_t padded_bytes(int tile) const = 0;
  // Offsets, lengths and addresses of transfers are multiples of this.
  virtual std::uint64_t alignment() const = 0;

  // Starts one transfer of a whole tile; memory.size() == padded_bytes(tile). Allocates nothing
  // once every tile has been transferred. A read of a tile never written gives back anything
  // (scratch) or is an error (versioned, checksums).
  virtual void submit(IoOp op, int tile, std::span<std::byte> memory, IoPriority priority,
                      IoCompletion& completion) = 0;
  // The same, waited for. Throws Error.
  void transfer(IoOp op, int tile, std::span<std::byte> memory);
  virtual std::size_t cancel(const IoCompletion& completion) = 0;

  // Versioned. Makes everything written since the last commit durable as `version` (greater than
  // the last); tiles not written since keep their bytes. `note` is the owner's: what it needs to go
  // on from here (step, data position), as it wishes. Flushes the drives written to, then writes,
  // flushes and renames the manifest, and flushes the directory. Throws; then the last version
  // stands.
  virtual void commit(std::uint64_t version, const std::string& note) = 0;
  virtual std::optional<std::uint64_t> committed_version() const = 0;  // none before the first
  virtual std::string committed_note() const = 0;
  // The store is removed when it is destroyed.
  virtual void discard() = 0;

  virtual std::uint64_t allocated_bytes() const = 0;  // what the file systems have given the store
  virtual std::string path() const = 0;               // the first drive's part
  virtual std::string describe() const = 0;           // per drive: path, bytes, O_DIRECT or why not
};

// Throws ConfigError unless `directory` can serve as part of the NVMe tier: a directory on a drive
// (tmpfs is never called NVMe) that can be written.
void check_drive_directory(const std::string& directory);
// Bytes that a store can reserve in `directory`: the free ones and those that killed runs left
// behind.
std::uint64_t available_drive_bytes(const std::string& directory);

// The versions that the versioned store at `path` can be opened at, the last one first: none before
// the first commit, at most two. Looks at the small files only and takes no lock. Throws as open().
struct StoreVersion {
  std::uint64_t version = 0;
  std::string note;
};
std::vector<StoreVersion> store_versions(const FileSystem& files, const std::string& path);

// What a store is and whether it is whole, for people: kind, id, owner alive or dead, drives,
// tiles and bytes per role, committed version, and, with `verify`, every tile's checksum. The text
// contains "FAILED" on a line of its own for each thing that is wrong. Reads only; takes no lock.
bool is_store(const std::string& path);
std::string inspect_store(const std::string& path, Verify verify);

}  // namespace strata
