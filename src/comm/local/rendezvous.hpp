#pragma once
// Where the ranks of one process meet: each collective begins when every rank has brought its call
// and ends when every rank has done its part. Calls that do not match, a rank that leaves and a
// rank that does not come end every wait with an Error that names the rank and the collective;
// after that all calls fail at once. Thread contract: every member may be called from any rank's
// thread; calls() between enter() and leave() only.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "strata/core/tensor_view.hpp"

namespace strata {

enum class Collective : std::uint8_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  broadcast,
  send,
  barrier
};
std::string_view collective_name(Collective collective);

// What one rank brings to a collective.
struct CollectiveCall {
  Collective kind = Collective::barrier;
  TensorView source, target;
  int root = 0;
};

class Rendezvous {
 public:
  Rendezvous(int world, double timeout_s);

  int world() const { return world_; }
  void enter(int rank,
             const CollectiveCall& call);  // Returns when all ranks are here and their calls match.
  const std::vector<CollectiveCall>& calls() const { return calls_; }
  void leave();             // Returns when all ranks have done their part; cannot fail.
  void withdraw(int rank);  // The rank will never call again.
  void abort(const std::string& reason);  // Any thread.
  std::string failure() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void match();
  void fail(std::string reason);
  void wait_for_all(int rank, Lock& lock);
  std::string absent_ranks() const;
  [[noreturn]] void throw_failure(int rank, Collective kind) const;

  // Constant after construction.
  int world_;
  double timeout_s_;
  // Guarded by mutex_; calls_ is written only while a collective gathers and read only while it
  // runs.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<CollectiveCall> calls_;
  std::vector<bool> here_, withdrawn_;
  int num_here_ = 0, num_done_ = 0;
  std::int64_t collectives_begun_ = 0, collectives_done_ = 0;
  std::string failure_;
};

}  // namespace strata
