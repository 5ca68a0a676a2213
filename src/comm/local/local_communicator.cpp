#include <algorithm>
#include <cstring>
#include <utility>

#include "rendezvous.hpp"
#include "strata/comm/communicator.hpp"
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

void copy(TensorView target, TensorView source) {
  if (target.data == source.data || source.count() == 0) return;
  std::memcpy(target.data, source.data, static_cast<std::size_t>(source.bytes()));
}

// Rank 0, 1, 2 ...: the same bits whoever adds and whoever comes first.
template <typename T>
T sum_at(const Calls& calls, std::int64_t index) {
  T sum = calls.front().source.as<T>()[index];
  for (std::size_t rank = 1; rank < calls.size(); ++rank) sum += calls[rank].source.as<T>()[index];
  return sum;
}

template <typename T>
void all_reduce_part(const Calls& calls, Span part) {
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    const T sum = sum_at<T>(calls, i);
    for (const CollectiveCall& call : calls) call.source.as<T>()[i] = sum;
  }
}

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(int rank, std::shared_ptr<Rendezvous> meeting)
      : rank_(rank), meeting_(std::move(meeting)) {}
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
  }

  void reduce_scatter(TensorView full, TensorView shard, Stream& stream) override {
    ensure(full.count() == shard.count() * world() && full.dtype == DType::f32 &&
           shard.dtype == DType::f32);
    meet({Collective::reduce_scatter, full, shard}, stream, [&](const Calls& calls) {
      const std::int64_t begin = shard.count() * rank_;
      for (std::int64_t i = 0; i < shard.count(); ++i)
        shard.as<float>()[i] = sum_at<float>(calls, begin + i);
    });
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

  void barrier(Stream& stream) override {
    meet({}, stream, [](const Calls&) {});
  }

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

  int rank_;
  std::shared_ptr<Rendezvous> meeting_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_local_communicators(int world, double timeout_s) {
  if (world < 1) throw ConfigError("a communicator needs at least one rank");
  const auto meeting = std::make_shared<Rendezvous>(world, timeout_s);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int rank = 0; rank < world; ++rank)
    ranks.push_back(std::make_unique<LocalCommunicator>(rank, meeting));
  return ranks;
}

}  // namespace strata
