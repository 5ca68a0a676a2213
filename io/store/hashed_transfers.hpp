#pragma once
// HashedTransfers moves tiles whose checksums are kept or compared, on hash threads of its own: the
// engine's threads never hash. Bookkeeping lives in nodes that are reused; nothing is allocated per
// transfer unless more are under way than ever before and than are reserved.
//
// Thread contract: constructed and destroyed by one thread, the rest from any. The destructor waits
// for what is under way.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "io/store/hashed_transfer.hpp"
#include "io/store/store_description.hpp"
#include "io/store/tile_ledger.hpp"

namespace strata {

class HashedTransfers {
 public:
  HashedTransfers(IoEngine& engine, const StoreDescription& store, TileLedger& ledger,
                  int num_threads);
  ~HashedTransfers();
  HashedTransfers(const HashedTransfers&) = delete;
  HashedTransfers& operator=(const HashedTransfers&) = delete;

  // `request` is the transfer; its completion is the caller's.
  void write(std::size_t tile, const IoRequest& request);
  void read(std::size_t tile, const IoRequest& request, std::uint64_t checksum);
  // Answers without a transfer.
  void refuse(const IoRequest& request, int error_number, std::string message);
  std::size_t cancel(const IoCompletion& caller);

  int num_writes() const;  // begun, and their callers not yet told

 private:
  friend struct HashedTransfer;
  using Lock = std::unique_lock<std::mutex>;
  using Step = HashedTransfer::Step;

  HashedTransfer& new_node(const IoRequest& request);
  void give_back(HashedTransfer& node);
  void enqueue(HashedTransfer& node, Step step);
  void work();
  HashedTransfer* wait_and_pop();
  void run(HashedTransfer& node);
  bool is_cancelled(const HashedTransfer& node) const;
  void hash_and_start(HashedTransfer& node);
  IoResult checked(const HashedTransfer& node) const;
  IoResult cancelled_result(const HashedTransfer& node) const;
  void transferred(HashedTransfer& node, const IoResult& result) noexcept;
  void end(HashedTransfer& node, const IoResult& result);

  IoEngine& engine_;
  const StoreDescription& store_;
  TileLedger& ledger_;

  mutable std::mutex mutex_;
  std::condition_variable work_;  // something waits for a hash thread, or stop
  std::condition_variable idle_;  // nothing is under way
  // Guarded by mutex_.
  std::deque<HashedTransfer> nodes_;
  HashedTransfer* free_nodes_ = nullptr;
  HashQueue queue_;
  int num_under_way_ = 0;
  int num_writes_ = 0;
  bool stopped_ = false;

  std::vector<std::jthread> threads_;
};

}  // namespace strata
