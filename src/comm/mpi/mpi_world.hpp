#pragma once
// An MpiWorld is what all ranks of this process share: where each rank lives, whether the job has
// failed, and the only way into MPI.
//
// MPI stands still after a failure. A message that waits for a dead process never ends, and it
// names memory of a rank: a slab, a pinned buffer. So no call here blocks; soon after the job has
// failed none enters MPI; and stand_still() returns when that is so and none is inside. Open MPI
// moves bytes only within its calls (its own threads carry no data), so from then on it reads and
// writes no memory of a rank, which may be freed; requests that are not complete are left as they
// are, and MPI is never finalized. What MPI is given before the next call needs it (headers) lies
// in memory that the MpiJob owns, and leaves behind.
//
// One call may still block for seconds: where MPI notices over TCP that a process is gone, it says
// so to mpirun and waits for an answer, which mpirun gives when it has killed the others. Then
// `on_late` is told why the job failed, as the ranks cannot tell.
//
// "Soon" lets a collective that all ranks have come to end well on all, so that a rank which is
// first to fail in the next one does not make the others fail in this.
//
// Thread contract: any thread.

#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <thread>

#include "strata/comm/communicator.hpp"
#include "strata/comm/process_group.hpp"

namespace strata {

enum class MpiLine : std::uint8_t { data, control };
enum class MessageKind : std::uint8_t { header, values };

// From one rank to another, on one line. Messages of one address keep their order.
struct MessageAddress {
  MpiLine line = MpiLine::data;
  MessageKind kind = MessageKind::header;
  int from = 0, to = 0;
};

class MpiWorld {
 public:
  // `ranks` names the processes for these ranks alone. Throws ConfigError when there are more ranks
  // than MPI has tags for.
  MpiWorld(MPI_Comm ranks, int ranks_per_process, const CommOptions& options, ProcessGroup& group);

  int world() const { return num_processes_ * ranks_per_process_; }
  int first_rank() const { return process_ * ranks_per_process_; }
  int ranks_per_process() const { return ranks_per_process_; }
  const CommOptions& options() const { return options_; }

  // False when the job has failed, and soon is over; then nothing was begun or found.
  bool start_send(const MessageAddress& address, std::span<const std::byte> bytes,
                  MPI_Request& request);
  bool start_receive(const MessageAddress& address, std::span<std::byte> bytes,
                     MPI_Request& request);
  // The requests that have completed since: the first `num_done` of `done`. num_done is
  // MPI_UNDEFINED when none is left.
  bool find_completed(std::span<MPI_Request> requests, std::span<int> done, int& num_done);

  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  std::string failure() const;                       // the first reason
  void fail(const std::string& reason) noexcept;     // of a rank of this process
  void hear_of(const std::string& reason) noexcept;  // of another process
  // After a failure only. From then on `on_late` is not called.
  void stand_still();
  void end_telling();  // For the MpiJob's end.

  // The first of this process's ranks that waits for a call tells.
  void tell_late(MpiLine line, std::uint64_t sequence, const std::string& text);

 private:
  template <typename Call>
  bool enter(const char* what, const Call& call);
  void fail_with_code(const char* what, int code);
  bool is_closed() const;
  bool keep_reason(const std::string& reason) noexcept;
  void tell_if_stuck(const std::string& reason);
  int process_of(int rank) const { return rank / ranks_per_process_; }
  int tag(const MessageAddress& address) const;

  // Constant after construction.
  MPI_Comm ranks_;
  int process_ = 0, num_processes_ = 1, ranks_per_process_;
  CommOptions options_;
  ProcessGroup& group_;
  // Shared by calls of MPI; alone by who waits until there are none.
  std::shared_timed_mutex gate_;
  std::atomic<bool> has_failed_ = false;
  std::array<std::atomic<std::uint64_t>, 2> told_late_ = {};  // by line: sequence + 1
  mutable std::mutex mutex_;
  std::string failure_;                              // guarded by mutex_
  std::chrono::steady_clock::time_point closes_at_;  // constant once has_failed_
  std::mutex telling_;                               // held while on_late is told of the failure
  std::jthread teller_;  // from the failure on; last, as it uses the rest
};

}  // namespace strata
