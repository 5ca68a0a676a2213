#pragma once
// Where the ranks of one process meet on one line: each collective begins when every rank has
// brought its call and ends when every rank has done its part. Calls that do not match, a rank that
// leaves and a rank that does not come fail the job, and a failed job ends every wait for a
// collective to begin with an Error that names the rank and the collective. What has begun is never
// cut short: a rank's memory is its peers' to read until they have.
//
// Thread contract: enter() and finish_part() from the rank's thread; calls() between those two
// only; withdraw() when the rank calls no more. They wait by themselves: no thread is behind them.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../collective.hpp"
#include "job_failure.hpp"
#include "strata/comm/communicator.hpp"
#include "strata/core/tensor_view.hpp"

namespace strata {

// What one rank brings to a collective.
struct CollectiveCall {
  Collective kind = Collective::barrier;
  TensorView source, target;
  int from = 0, to = 0;  // the ranks of a broadcast or send
};

class Rendezvous {
 public:
  Rendezvous(int world, const CommOptions& options, JobFailure& job);

  int world() const { return static_cast<int>(calls_.size()); }
  // Returns when all ranks are here and their calls match.
  void enter(int rank, const CollectiveCall& call);
  const std::vector<CollectiveCall>& calls() const { return calls_; }
  // Returns when all ranks have done this part of the collective; cannot fail.
  void finish_part();
  void withdraw(int rank);  // The rank will never call again.

 private:
  using Lock = JobFailure::Lock;
  using Clock = std::chrono::steady_clock;

  void begin_if_calls_match(const Lock& lock);
  void wait_for_all(int rank, std::int64_t before, Lock& lock);
  void block(int rank, Clock::time_point start, Lock& lock);
  void tell_late(int rank, Clock::duration waited, Lock& lock) noexcept;
  bool is_over(std::int64_t before) const;
  std::string absent_ranks() const;
  std::string describe_call(int rank) const;
  [[noreturn]] void throw_failure(int rank, Collective kind, const Lock& lock) const;

  // Constant after construction.
  Clock::duration late_, timeout_;
  std::function<void(const std::string&)> on_late_;
  int spins_;
  JobFailure& job_;
  // Guarded by the job's lock; calls_ is written only while a collective gathers and read only
  // while it runs.
  std::condition_variable changed_;
  std::vector<CollectiveCall> calls_;
  std::vector<bool> here_, withdrawn_;
  int num_here_ = 0, num_finished_ = 0;
  bool is_late_told_ = false;
  // Written under the job's lock.
  std::atomic<std::int64_t> collectives_begun_ = 0, parts_finished_ = 0;
};

}  // namespace strata
