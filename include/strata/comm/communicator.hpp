#pragma once
// A Communicator carries collectives of views among the ranks of a job, in one fixed order of
// summation (rank 0, 1, 2 ...), so results depend neither on arrival nor on which ranks share a
// process. Every rank must call the same collectives in the same order.
//
// Views lie in memory that this process can read and write. bf16 is added in f32 and rounded once,
// to nearest even. A sum of several ranks that is no number is the plain quiet NaN.
//
// Failure. abort() ends every wait, and every later call, of every rank of the job with an Error
// that tells the first reason given. So do a call that does not match the others', a rank that
// leaves (its Communicator is destroyed) and one that does not come within `timeout_s`: the Error
// names the rank and the collective. A failed job never works again.
//
// Thread contract: collectives from one thread at a time; abort(), failure() and bytes_exchanged()
// from any.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strata/core/tensor_view.hpp"
#include "strata/device/device.hpp"

namespace strata {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;
  // Of its collectives: on_return, whatever the stream; or on_stream, in its order.
  virtual Completion completion() const { return Completion::on_return; }
  // `gathered` has world x shard.count() elements of any dtype; `shard` may be its own part of it.
  virtual void all_gather(TensorView shard, TensorView gathered, Stream&) = 0;
  // `shard` = sum over ranks of their `full` at this rank's part, which it may be. f32, f64 or
  // bf16.
  virtual void reduce_scatter(TensorView full, TensorView shard, Stream&) = 0;
  virtual void all_reduce(TensorView values, Stream&) = 0;  // f32 or f64, in place
  virtual void broadcast(TensorView values, int root, Stream&) = 0;
  // The values of rank `from` come to rank `to`; the other ranks take part with views of the same
  // count and dtype, whose memory is not looked at.
  virtual void send(TensorView values, int from, int to, Stream&) = 0;
  virtual void barrier(Stream&) = 0;

  // Of collectives that complete on a stream, once it is done with them: throws when the job's
  // failure cut one short, which leaves rubbish though the stream goes on. Any thread.
  virtual void confirm() const {}

  // Since the start: what all_gather brought to this rank from others, and what reduce_scatter took
  // from it to others, in the ideal exchange: (world - 1) / world of the whole, each.
  virtual std::uint64_t bytes_exchanged() const = 0;

  // "rank 2: step 4: update on lane update ...: why". Kept if it is the job's first.
  virtual void abort(const std::string& reason) noexcept = 0;
  virtual std::string failure() const = 0;  // the first reason; empty: none
};

struct CommOptions {
  double timeout_s = 1800;  // for a rank that does not come
  // The watchdog: told once per collective that some ranks have waited `late_s` for others: "rank 2
  // has not come to all_gather of 4096 bf16 for 30 s". On any thread, under no lock; must not
  // throw. Empty: nobody.
  double late_s = 30;
  std::function<void(const std::string&)> on_late = {};
};

// What one rank holds of its job: two lines over the same ranks that fail together. `data` is the
// comm lane's, `control` the rank's own thread's.
struct RankLinks {
  std::unique_ptr<Communicator> data, control;
};

// Ranks that are threads of this process, by rank.
std::vector<RankLinks> make_local_ranks(int world, const CommOptions& options = {});

}  // namespace strata
