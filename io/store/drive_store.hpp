#pragma once
// The ShardStore on drives: a description, a part per drive, and the ledger of what is where.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/store/hashed_transfers.hpp"
#include "io/store/store_description.hpp"
#include "io/store/store_part.hpp"
#include "io/store/tile_ledger.hpp"
#include "strata/io/store/shard_store.hpp"

namespace strata {

// What create() and open() have put together.
struct StoreState {
  StoreDescription description;
  std::vector<StorePart> parts;  // by drive
  Manifest committed;
  std::size_t slot = 0;  // where the committed manifest is
};

// Throws ConfigError when `options` contradict themselves.
void check_store_options(const StoreOptions& options, Checksums checksums);

class DriveStore : public ShardStore {
 public:
  DriveStore(IoEngine& engine, StoreState state, const StoreOptions& options);

  int num_tiles() const override { return static_cast<int>(description_.tiles.size()); }
  const StoreTile& tile(int index) const override { return extent(index).tile; }
  std::optional<int> find(const std::string& name) const override;
  std::uint64_t padded_bytes(int tile) const override;
  std::uint64_t alignment() const override { return description_.alignment; }

  void submit(IoOp op, int tile, std::span<std::byte> memory, IoPriority priority,
              IoCompletion& completion) override;
  std::size_t cancel(const IoCompletion& completion) override;

  void commit(std::uint64_t version, const std::string& note) override;
  std::optional<std::uint64_t> committed_version() const override { return ledger_.version(); }
  std::string committed_note() const override { return ledger_.note(); }
  void discard() override;

  std::uint64_t allocated_bytes() const override;
  std::string path() const override;
  std::string describe() const override;

 private:
  const TileExtent& extent(int tile) const;
  IoRequest request(IoOp op, int tile, std::uint8_t place, std::span<std::byte> memory) const;
  void submit_write(int tile, IoRequest request);
  void submit_read(int tile, IoRequest request);
  void refuse_read(const IoRequest& request, int tile, TileLedger::State state);
  void check_commit(std::uint64_t version, const std::string& note) const;
  void flush_written_drives();
  void publish(const Manifest& manifest);

  IoEngine& engine_;
  // Constant after construction.
  const StoreDescription description_;
  const Verify verify_;
  std::unordered_map<std::string, int> indices_;
  std::vector<StorePart> parts_;

  TileLedger ledger_;
  std::size_t slot_;  // of the last manifest; of commit()
  // Nobody knows which version a crash would now leave: nothing may be written any more.
  std::atomic<bool> is_in_doubt_ = false;
  std::unique_ptr<HashedTransfers> hashed_;  // with checksums
};

}  // namespace strata
