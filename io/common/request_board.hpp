#pragma once
// The RequestBoard stands between callers and an engine's threads: it holds the open files and the
// waiting requests, cuts requests into pieces by priority, and delivers each request's completion
// once, on an engine thread. Bookkeeping lives in nodes that are reused: nothing is allocated per
// request unless more are outstanding than ever before and than the board reserves. It also knows
// which pieces the kernel has, for whoever watches for stalls.
//
// Thread contract: all methods from any thread; take(), wait_and_take() and finish() only from the
// engine's threads, as they call completions.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "io/common/drain_epochs.hpp"
#include "io/common/file_table.hpp"
#include "io/common/in_flight_list.hpp"
#include "io/common/request_queue.hpp"

namespace strata {

class RequestBoard {
 public:
  // `queue`: which of an engine's boards this is; its files' ids say so.
  explicit RequestBoard(std::uint64_t chunk_bytes, int queue = 0);

  FileId add_file(std::shared_ptr<OpenFile> file);
  std::shared_ptr<OpenFile> file(FileId id) const;  // Throws SystemError when it is not open.
  // No further request gets the file; returns when those submitted have completed. Throws like
  // file().
  std::shared_ptr<OpenFile> remove_file(FileId id);

  void submit(std::span<const IoRequest> requests);
  // As IoEngine::cancel(). Those with nothing in flight complete at the next take().
  std::size_t cancel(const IoCompletion& completion);
  void drain();
  std::uint64_t outstanding() const;  // requests submitted and not completed

  std::optional<Piece> take();           // Nothing when no piece waits.
  std::optional<Piece> wait_and_take();  // Nothing after stop(), when no piece waits.
  void finish(Piece& piece);
  void stop();
  bool stopped() const;

  // As InFlightList has them.
  StallCheck check_stall(std::int64_t now_ns, std::int64_t stall_ns);
  void forget_pause(std::int64_t pause_ns, std::int64_t now_ns);

 private:
  using Lock = std::unique_lock<std::mutex>;

  ActiveRequest& new_node();
  void give_back(ActiveRequest& node);
  void enqueue(const IoRequest& request);
  std::optional<Piece> take(Lock& lock);
  void give_up(ActiveRequest& active);
  void settle_waiting(Lock& lock);
  Piece cut(ActiveRequest& active);
  void complete(ActiveRequest& active, Lock& lock);
  static IoResult result_of(ActiveRequest& active);

  const std::uint64_t chunk_bytes_;

  mutable std::mutex mutex_;
  std::condition_variable work_;     // a piece may be waiting, or stop
  std::condition_variable settled_;  // a request has completed
  // Guarded by mutex_.
  FileTable files_;
  std::deque<ActiveRequest> nodes_;
  ActiveRequest* free_nodes_ = nullptr;
  ActiveRequest* to_settle_ = nullptr;  // refused, empty and given up: no transfer is due
  RequestQueue queue_;
  InFlightList in_flight_;
  DrainEpochs epochs_;
  std::uint64_t sequence_ = 0;
  std::uint64_t outstanding_ = 0;
  bool stopped_ = false;
};

}  // namespace strata
