// Ranks that read each other's memory: each rank pulls what it needs and writes its own memory
// alone, which its node of the machine holds.

#include <algorithm>
#include <atomic>
#include <utility>

#include "comm/bulk_copy.hpp"
#include "comm/meeting.hpp"
#include "comm/rank_sum.hpp"
#include "rendezvous.hpp"
#include "strata/comm/communicator.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/dtype.hpp"
#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

using Calls = std::vector<CollectiveCall>;

constexpr std::int64_t cache_line_bytes = 64;

void copy(TensorView target, TensorView source) {
  bulk_copy(target.as<std::byte>(), source.as<const std::byte>(),
            static_cast<std::size_t>(source.bytes()));
}

// The part of `whole` that one rank reduces; no two ranks write to one cache line.
TensorView part_of(TensorView whole, int rank, int world) {
  const std::int64_t line = cache_line_bytes / dtype_bytes(whole.dtype);
  const std::int64_t part = ceil_div(ceil_div(whole.count(), std::int64_t{world}), line) * line;
  const std::int64_t begin = std::min(part * rank, whole.count());
  return whole.slice(begin, {std::min(part, whole.count() - begin)});
}

// The lines of one job, which fail together.
struct LocalJob {
  LocalJob(int world, const CommOptions& options)
      : data(world, options, failure), control(world, options, failure) {}
  JobFailure failure;
  Rendezvous data, control;
};

class LocalCommunicator final : public Communicator, public Meeting {
 public:
  LocalCommunicator(int rank, Rendezvous& line, std::shared_ptr<LocalJob> job)
      : rank_(rank),
        job_(std::move(job)),
        line_(line),
        sources_(static_cast<std::size_t>(line.world())) {}
  ~LocalCommunicator() override { LocalCommunicator::leave(); }

  int rank() const override { return rank_; }
  int world() const override { return line_.world(); }

  void all_gather(TensorView shard, TensorView gathered, Stream& stream) override {
    ensure(gathered.count() == shard.count() * world() && gathered.dtype == shard.dtype);
    meet({Collective::all_gather, shard, gathered}, stream, [&](const Calls& calls) {
      for_each_from_next([&](int rank) {
        copy(gathered.slice(shard.count() * rank, {shard.count()}), source(calls, rank));
      });
    });
    count_exchanged(shard);
  }

  void reduce_scatter(TensorView full, TensorView shard, Stream& stream) override {
    ensure(full.count() == shard.count() * world() && full.dtype == shard.dtype);
    ensure(full.dtype == DType::f32 || full.dtype == DType::f64 || full.dtype == DType::bf16);
    meet({Collective::reduce_scatter, full, shard}, stream, [&](const Calls& calls) {
      sum_parts(
          calls,
          [&](TensorView whole) { return whole.slice(shard.count() * rank_, {shard.count()}); },
          shard);
    });
    count_exchanged(shard);
  }

  void all_reduce(TensorView values, Stream& stream) override {
    ensure(values.dtype == DType::f32 || values.dtype == DType::f64);
    meet({Collective::all_reduce, values, values}, stream, [&](const Calls& calls) {
      const auto part = [&](TensorView whole, int rank) { return part_of(whole, rank, world()); };
      sum_parts(
          calls, [&](TensorView whole) { return part(whole, rank_); }, part(values, rank_));
      line_.finish_part();
      for_each_from_next(
          [&](int rank) { copy(part(values, rank), part(source(calls, rank), rank)); });
    });
  }

  void broadcast(TensorView values, int root, Stream& stream) override {
    ensure(root >= 0 && root < world());
    meet({Collective::broadcast, values, values, root}, stream,
         [&](const Calls& calls) { copy(values, source(calls, root)); });
  }

  void send(TensorView values, int from, int to, Stream& stream) override {
    ensure(from >= 0 && from < world() && to >= 0 && to < world());
    meet({Collective::send, values, values, from, to}, stream, [&](const Calls& calls) {
      if (rank_ == to) copy(values, source(calls, from));
    });
  }

  void barrier(Stream& stream) override {
    meet({}, stream, [](const Calls&) {});
  }

  std::uint64_t bytes_exchanged() const override {
    return bytes_exchanged_.load(std::memory_order_relaxed);
  }
  void abort(const std::string& reason) noexcept override {
    job_->failure.fail(job_->failure.lock(), reason);
  }
  std::string failure() const override { return job_->failure.reason(job_->failure.lock()); }

  void meet(const MetCall& call) override {
    const TensorView values{nullptr, call.dtype, {call.count}};
    line_.enter(rank_, {call.kind, values, values, call.from, call.to});
  }
  void leave() noexcept override {
    if (!std::exchange(has_left_, true)) line_.withdraw(rank_);
  }

 private:
  // Peers read this rank's memory directly, so the stream's earlier work must be done before they
  // are let in.
  template <typename Work>
  void meet(const CollectiveCall& call, Stream& stream, const Work& work) {
    stream.synchronize();
    line_.enter(rank_, call);
    work(line_.calls());
    line_.finish_part();
  }

  static TensorView source(const Calls& calls, int rank) {
    return calls[static_cast<std::size_t>(rank)].source;
  }

  // Every rank begins with another, so that not all read the memory of one at once.
  template <typename Work>
  void for_each_from_next(const Work& work) const {
    for (int i = 1; i <= world(); ++i) work((rank_ + i) % world());
  }

  // `sum` = the sum over ranks of part(the rank's source).
  template <typename Part>
  void sum_parts(const Calls& calls, const Part& part, TensorView sum) {
    for (std::size_t rank = 0; rank < calls.size(); ++rank)
      sources_[rank] = part(calls[rank].source).template as<const std::byte>();
    sum_ranks(sources_, sum.dtype, sum.count(), sum.as<std::byte>());
  }

  void count_exchanged(TensorView shard) {
    bytes_exchanged_.fetch_add(static_cast<std::uint64_t>(shard.bytes() * (world() - 1)),
                               std::memory_order_relaxed);
  }

  // Constant after construction.
  int rank_;
  std::shared_ptr<LocalJob> job_;
  Rendezvous& line_;
  // Of the thread that calls.
  bool has_left_ = false;
  std::vector<const std::byte*> sources_;
  std::atomic<std::uint64_t> bytes_exchanged_ = 0;
};

}  // namespace

std::vector<RankLinks> make_local_ranks(int world, const CommOptions& options) {
  if (world < 1) throw ConfigError("a communicator needs at least one rank");
  const auto job = std::make_shared<LocalJob>(world, options);
  std::vector<RankLinks> ranks;
  for (int rank = 0; rank < world; ++rank)
    ranks.push_back({std::make_unique<LocalCommunicator>(rank, job->data, job),
                     std::make_unique<LocalCommunicator>(rank, job->control, job)});
  return ranks;
}

}  // namespace strata
