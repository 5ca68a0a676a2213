#pragma once
// A JoinedStore shows a versioned store and a scratch store as one: some tiles have versions, the
// others are one run's memory, of which nothing is flushed by a commit or left on the drives.
//
// Thread contract: as of ShardStore.

#include <memory>
#include <string>
#include <vector>

#include "strata/io/store/shard_store.hpp"

namespace strata {

class JoinedStore final : public ShardStore {
 public:
  // By tile, whether it is one of the versioned store's. Each store has its own in their order.
  JoinedStore(std::unique_ptr<ShardStore> versioned, std::unique_ptr<ShardStore> scratch,
              const std::vector<bool>& has_versions);

  int num_tiles() const override { return static_cast<int>(places_.size()); }
  const StoreTile& tile(int index) const override;
  std::optional<int> find(const std::string& name) const override;
  std::uint64_t padded_bytes(int tile) const override;
  std::uint64_t alignment() const override;

  void submit(IoOp op, int tile, std::span<std::byte> memory, IoPriority priority,
              IoCompletion& completion) override;
  std::size_t cancel(const IoCompletion& completion) override;

  void commit(std::uint64_t version, const std::string& note) override;
  std::optional<std::uint64_t> committed_version() const override;
  std::string committed_note() const override;
  void discard() override;

  std::uint64_t allocated_bytes() const override;
  std::string path() const override;
  std::string describe() const override;

 private:
  struct Place {
    ShardStore* store = nullptr;
    int tile = 0;
  };
  const Place& place(int tile) const;

  const std::unique_ptr<ShardStore> versioned_, scratch_;
  std::vector<Place> places_;
};

}  // namespace strata
