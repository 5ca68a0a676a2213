#include "io/store/hashed_transfers.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "io/store/checksum.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr int nodes_reserved = 512;  // as many as the engines reserve

}  // namespace

HashedTransfers::HashedTransfers(IoEngine& engine, const StoreDescription& store,
                                 TileLedger& ledger, int num_threads)
    : engine_(engine), store_(store), ledger_(ledger) {
  for (int i = 0; i < nodes_reserved; ++i) give_back(nodes_.emplace_back());
  for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { work(); });
}

HashedTransfers::~HashedTransfers() {
  {
    Lock lock(mutex_);
    idle_.wait(lock, [&] { return num_under_way_ == 0; });
    stopped_ = true;
  }
  work_.notify_all();
}

void HashedTransfers::write(std::size_t tile, const IoRequest& request) {
  const Lock lock(mutex_);
  HashedTransfer& node = new_node(request);
  node.tile = tile;
  node.hash_bytes = store_.tiles[tile].tile.bytes;
  ++num_writes_;
  enqueue(node, Step::hash_write);
}

void HashedTransfers::read(std::size_t tile, const IoRequest& request, std::uint64_t checksum) {
  const Lock lock(mutex_);
  HashedTransfer& node = new_node(request);
  node.tile = tile;
  node.hash_bytes = store_.tiles[tile].tile.bytes;
  node.checksum = checksum;
  node.step = Step::at_engine;
  engine_.submit({&node.request, 1});
}

void HashedTransfers::refuse(const IoRequest& request, int error_number, std::string message) {
  const Lock lock(mutex_);
  HashedTransfer& node = new_node(request);
  node.result = {0, error_number, std::move(message)};
  if (request.op == IoOp::write) ++num_writes_;
  enqueue(node, Step::refuse);
}

HashedTransfer& HashedTransfers::new_node(const IoRequest& request) {
  ensure(request.completion != nullptr);
  if (free_nodes_ == nullptr) give_back(nodes_.emplace_back());
  HashedTransfer& node = *std::exchange(free_nodes_, free_nodes_->next);
  node.owner = this;
  node.cancelled = false;
  node.request = request;
  node.request.completion = &node;
  node.caller = request.completion;
  ++num_under_way_;
  return node;
}

void HashedTransfers::give_back(HashedTransfer& node) {
  node.step = Step::idle;
  node.next = std::exchange(free_nodes_, &node);
}

void HashedTransfers::enqueue(HashedTransfer& node, Step step) {
  node.step = step;
  queue_.push(node);
  work_.notify_one();
}

// Requests still to be hashed are given up here, those at the engine by the engine; a read that is
// being compared was under way to its end. The engine is asked with the mutex held, so that the
// node cannot become another request's meanwhile.
std::size_t HashedTransfers::cancel(const IoCompletion& caller) {
  const Lock lock(mutex_);
  std::size_t count = 0;
  for (HashedTransfer& node : nodes_) {
    if (node.step == Step::idle || node.caller != &caller) continue;
    if (node.step == Step::at_engine) count += engine_.cancel(node);
    if (node.step == Step::hash_write && !std::exchange(node.cancelled, true)) ++count;
  }
  return count;
}

int HashedTransfers::num_writes() const {
  const Lock lock(mutex_);
  return num_writes_;
}

void HashedTransfers::work() {
  while (HashedTransfer* node = wait_and_pop()) run(*node);
}

HashedTransfer* HashedTransfers::wait_and_pop() {
  Lock lock(mutex_);
  work_.wait(lock, [&] { return stopped_ || !queue_.empty(); });
  return queue_.pop();
}

// The step of a node that a hash thread holds changes on that thread only.
void HashedTransfers::run(HashedTransfer& node) {
  switch (node.step) {
    case Step::hash_write:
      return hash_and_start(node);
    case Step::check_read:
      return end(node, checked(node));
    case Step::refuse:
      return end(node, std::exchange(node.result, {}));
    default:
      ensure(false);
  }
}

bool HashedTransfers::is_cancelled(const HashedTransfer& node) const {
  const Lock lock(mutex_);
  return node.cancelled;
}

void HashedTransfers::hash_and_start(HashedTransfer& node) {
  if (!is_cancelled(node)) node.checksum = checksum({node.request.data, node.hash_bytes});
  {
    const Lock lock(mutex_);
    if (!node.cancelled) {
      node.step = Step::at_engine;
      ledger_.begin_write(node.tile);
      return engine_.submit({&node.request, 1});
    }
  }
  end(node, cancelled_result(node));
}

IoResult HashedTransfers::checked(const HashedTransfer& node) const {
  const std::uint64_t found = checksum({node.request.data, node.hash_bytes});
  if (found == node.checksum) return {node.request.bytes, 0, ""};
  return {
      0, EIO,
      fmt::format("tile '{}' read from {} at offset {} is damaged: the checksum of its {} bytes "
                  "is {:016x}, of what was written it was {:016x}",
                  store_.tiles[node.tile].tile.name, engine_.info(node.request.file).path,
                  node.request.offset, node.hash_bytes, found, node.checksum)};
}

IoResult HashedTransfers::cancelled_result(const HashedTransfer& node) const {
  return {0, ECANCELED,
          fmt::format("the write of tile '{}' was cancelled before it began",
                      store_.tiles[node.tile].tile.name)};
}

void HashedTransfers::transferred(HashedTransfer& node, const IoResult& result) noexcept {
  if (node.request.op == IoOp::write) {
    if (result.ok()) ledger_.end_write(node.tile, node.checksum);
    return end(node, result);
  }
  if (!result.ok()) return end(node, result);
  const Lock lock(mutex_);
  enqueue(node, Step::check_read);
}

// The caller may commit, or submit the tile again, as soon as it is told.
void HashedTransfers::end(HashedTransfer& node, const IoResult& result) {
  {
    const Lock lock(mutex_);
    node.step = Step::ending;
    if (node.request.op == IoOp::write) --num_writes_;
  }
  node.caller->complete(result);
  const Lock lock(mutex_);
  give_back(node);
  if (--num_under_way_ == 0) idle_.notify_all();
}

}  // namespace strata
