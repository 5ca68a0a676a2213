#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "rendezvous.hpp"
#include "strata/comm/communicator.hpp"
#include "strata/core/dtype.hpp"
#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

using Calls = std::vector<CollectiveCall>;

struct Span {
  std::int64_t begin = 0, end = 0;
};

// The elements of `count` that one rank works on.
Span part_of(std::int64_t count, int rank, int world) {
  return {count * rank / world, count * (rank + 1) / world};
}

float to_sum(float value) { return value; }
double to_sum(double value) { return value; }
float to_sum(bfloat16 value) { return to_float(value); }

template <typename T>
T rounded(decltype(to_sum(T{})) sum) {
  if constexpr (std::is_same_v<T, bfloat16>)
    return to_bfloat16(sum);
  else
    return sum;
}

void copy(TensorView target, TensorView source) {
  if (target.data == source.data || source.count() == 0) return;
  std::memcpy(target.data, source.data, static_cast<std::size_t>(source.bytes()));
}

// Rank 0, 1, 2 ...: the same bits whoever adds and whoever comes first.
template <typename T>
T sum_at(const Calls& calls, std::int64_t index) {
  auto sum = to_sum(calls.front().source.as<T>()[index]);
  for (std::size_t rank = 1; rank < calls.size(); ++rank)
    sum += to_sum(calls[rank].source.as<T>()[index]);
  return rounded<T>(sum);
}

template <typename T>
void all_reduce_part(const Calls& calls, Span part) {
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    const T sum = sum_at<T>(calls, i);
    for (const CollectiveCall& call : calls) call.source.as<T>()[i] = sum;
  }
}

// The lines of one job, which fail together.
struct Meetings {
  Meetings(int world, double timeout_s) : data(world, timeout_s), control(world, timeout_s) {}
  Rendezvous data, control;
  void abort(const std::string& reason) {
    data.abort(reason);
    control.abort(reason);
  }
};

template <typename T>
void reduce_part(const Calls& calls, TensorView shard, std::int64_t begin) {
  for (std::int64_t i = 0; i < shard.count(); ++i) shard.as<T>()[i] = sum_at<T>(calls, begin + i);
}

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(int rank, std::shared_ptr<Rendezvous> meeting, std::shared_ptr<Meetings> all)
      : rank_(rank), meeting_(std::move(meeting)), abort_(std::move(all)) {}
  ~LocalCommunicator() override { meeting_->withdraw(rank_); }

  int rank() const override { return rank_; }
  int world() const override { return meeting_->world(); }

  void all_gather(TensorView shard, TensorView gathered, Stream& stream) override {
    ensure(gathered.count() == shard.count() * world() && gathered.dtype == shard.dtype);
    meet({Collective::all_gather, shard, gathered}, stream, [&](const Calls& calls) {
      for (std::size_t rank = 0; rank < calls.size(); ++rank) {
        copy(gathered.slice(static_cast<std::int64_t>(rank) * shard.count(), {shard.count()}),
             calls[rank].source);
      }
    });
    count_exchanged(shard);
  }

  void reduce_scatter(TensorView full, TensorView shard, Stream& stream) override {
    ensure(full.count() == shard.count() * world() && full.dtype == shard.dtype);
    ensure(full.dtype == DType::f32 || full.dtype == DType::f64 || full.dtype == DType::bf16);
    meet({Collective::reduce_scatter, full, shard}, stream, [&](const Calls& calls) {
      const std::int64_t begin = shard.count() * rank_;
      if (full.dtype == DType::bf16) return reduce_part<bfloat16>(calls, shard, begin);
      if (full.dtype == DType::f64) return reduce_part<double>(calls, shard, begin);
      reduce_part<float>(calls, shard, begin);
    });
    count_exchanged(shard);
  }

  void all_reduce(TensorView values, Stream& stream) override {
    ensure(values.dtype == DType::f32 || values.dtype == DType::f64);
    meet({Collective::all_reduce, values, values}, stream, [&](const Calls& calls) {
      const Span part = part_of(values.count(), rank_, world());
      if (values.dtype == DType::f64) return all_reduce_part<double>(calls, part);
      all_reduce_part<float>(calls, part);
    });
  }

  void broadcast(TensorView values, int root, Stream& stream) override {
    ensure(root >= 0 && root < world());
    meet({Collective::broadcast, values, values, root}, stream,
         [&](const Calls& calls) { copy(values, calls[static_cast<std::size_t>(root)].source); });
  }

  void send(TensorView values, int from, int to, Stream& stream) override {
    ensure(from >= 0 && from < world() && to >= 0 && to < world());
    meet({Collective::send, values, values, from}, stream, [&](const Calls& calls) {
      if (rank_ == to) copy(values, calls[static_cast<std::size_t>(from)].source);
    });
  }

  void barrier(Stream& stream) override {
    meet({}, stream, [](const Calls&) {});
  }

  std::uint64_t bytes_exchanged() const override { return bytes_exchanged_; }
  void abort(const std::string& reason) noexcept override { abort_->abort(reason); }
  std::string failure() const override { return meeting_->failure(); }

 private:
  // Peers read this rank's memory directly, so the stream's earlier work must be done before they
  // are let in.
  template <typename Work>
  void meet(const CollectiveCall& call, Stream& stream, const Work& work) {
    stream.synchronize();
    meeting_->enter(rank_, call);
    work(meeting_->calls());
    meeting_->leave();
  }

  void count_exchanged(TensorView shard) {
    bytes_exchanged_ += static_cast<std::uint64_t>(shard.bytes() * (world() - 1));
  }

  int rank_;
  std::shared_ptr<Rendezvous> meeting_;
  std::shared_ptr<Meetings> abort_;
  std::uint64_t bytes_exchanged_ = 0;
};

}  // namespace

std::vector<RankLinks> make_local_ranks(int world, const CommOptions& options) {
  if (world < 1) throw ConfigError("a communicator needs at least one rank");
  const auto all = std::make_shared<Meetings>(world, options.timeout_s);
  std::vector<RankLinks> ranks;
  for (int rank = 0; rank < world; ++rank) {
    const auto line = [&](Rendezvous& meeting) {
      return std::make_unique<LocalCommunicator>(rank, std::shared_ptr<Rendezvous>(all, &meeting),
                                                 all);
    };
    ranks.push_back({line(all->data), line(all->control)});
  }
  return ranks;
}

}  // namespace strata
