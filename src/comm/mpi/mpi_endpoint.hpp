#pragma once
// An MpiEndpoint is one rank's end of one line: it agrees with the other ranks on the next call and
// moves that call's bytes. Every wait ends with an Error when the job fails, and fails the job when
// a rank does not come.
//
// Thread contract: one thread at a time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "call_header.hpp"
#include "mpi_world.hpp"
#include "comm/patience.hpp"

namespace strata {

inline std::size_t as_index(int rank) { return static_cast<std::size_t>(rank); }

// Messages under way, and the rank at the other end of each.
struct Transfers {
  std::vector<MPI_Request> requests;
  std::vector<int> peers;
  std::vector<int> done;  // room for MPI's answers
};

class MpiEndpoint {
 public:
  MpiEndpoint(std::shared_ptr<MpiWorld> world, MpiLine line, int rank);

  int rank() const { return rank_; }
  int num_ranks() const { return world_->world(); }
  MpiWorld& world() { return *world_; }
  const MpiWorld& world() const { return *world_; }

  // Returns when every rank has come with the same call.
  void meet(const CallHeader& call);
  // Messages of the call that was met; the bytes belong to MPI until finish(). What one rank sends
  // another comes in the order sent, so both must cut it alike.
  void send(int to, std::span<const std::byte> bytes, Transfers& transfers);
  void receive(int from, std::span<std::byte> bytes, Transfers& transfers);
  void finish(Transfers& transfers);

  // The rank will never call again.
  void leave() noexcept;
  // Whether all ranks have left and nothing is under way, so that MPI may end. Only after leave().
  bool is_over();

 private:
  enum class Phase : std::uint8_t { meeting, moving };

  void open_mailboxes();
  void give(const CallHeader& header);
  void take_header(int from);
  template <typename OnDone>
  void wait(Transfers& transfers, const OnDone& on_done);
  void check_lateness(double waited_s, const Transfers& transfers);
  std::string late_ranks(const Transfers& transfers, std::string_view one,
                         std::string_view many) const;
  [[noreturn]] void throw_failure();

  // Constant after construction.
  std::shared_ptr<MpiWorld> world_;
  MpiLine line_;
  int rank_;
  // The call at hand, and what the ranks call, by rank.
  Phase phase_ = Phase::meeting;
  std::uint64_t num_calls_ = 0;
  std::vector<CallHeader> calls_;
  bool is_late_told_ = false;
  // MPI's while headers are under way: ours to all, theirs by rank.
  CallHeader given_;
  std::vector<CallHeader> taken_;
  // At 2 x rank the receive of its next header, which is always under way between calls, and beside
  // it the sending of ours.
  Transfers headers_;
  Patience patience_;
};

}  // namespace strata
