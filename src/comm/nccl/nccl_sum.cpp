#include "comm/nccl/nccl_sum.hpp"

#include <algorithm>

#include "comm/nccl/nccl_calls.hpp"
#include "strata/core/dtype.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::uint64_t token_bytes = 16;  // what ranks exchange to meet

}  // namespace

NcclSum::NcclSum(NcclLink& link, Device& device, const NcclRankOptions& options, int rank,
                 int world)
    : link_(link),
      sum_(options.sum),
      staging_(options.staging, device),
      rank_(rank),
      world_(world),
      terms_(static_cast<std::size_t>(world)) {
  ensure(sum_ != nullptr && staging_.slot_bytes(world) > 0);
}

TensorView NcclSum::slot(int index, int num_slots, DType dtype, std::int64_t count) const {
  return {staging_.slot(index, num_slots), dtype, {count}};
}

void NcclSum::scatter(const MetCall& call, TensorView full, TensorView shard, Stream& stream) {
  const std::int64_t chunk = staging_.slot_bytes(world_ - 1) / dtype_bytes(full.dtype);
  staging_.begin_use(stream);
  for (std::int64_t begin = 0; begin < shard.count(); begin += chunk) {
    const std::int64_t count = std::min(chunk, shard.count() - begin);
    exchange(call, full, begin, count, stream);
    for (int other = 0; other < world_; ++other)
      terms_[static_cast<std::size_t>(other)] =
          other == rank_ ? full.slice(rank_ * shard.count() + begin, {count})
                         : slot(slot_of(other), world_ - 1, full.dtype, count);
    sum_(terms_, shard.slice(begin, {count}), stream);
  }
  staging_.end_use(stream);
}

// To the next rank first: at each step every rank sends to one rank and hears of one.
void NcclSum::exchange(const MetCall& call, TensorView full, std::int64_t begin, std::int64_t count,
                       Stream& stream) {
  const std::int64_t part = full.count() / world_;
  link_.run(call, stream, [&](NcclCalls& calls) {
    for (int step = 1; step < world_; ++step) {
      const int from = (rank_ + world_ - step) % world_, to = (rank_ + step) % world_;
      const TensorView given = full.slice(to * part + begin, {count});
      const TensorView taken = slot(slot_of(from), world_ - 1, full.dtype, count);
      calls.send(given.data, count_bytes(given), to, stream.native());
      calls.receive(taken.data, count_bytes(taken), from, stream.native());
    }
  });
}

// What is gathered lies without gaps.
void NcclSum::share(const MetCall& call, TensorView values, Stream& stream) {
  const std::int64_t chunk = staging_.slot_bytes(world_) / dtype_bytes(values.dtype);
  staging_.begin_use(stream);
  for (std::int64_t begin = 0; begin < values.count(); begin += chunk) {
    const TensorView own = values.slice(begin, {std::min(chunk, values.count() - begin)});
    const TensorView all = slot(0, 1, values.dtype, own.count() * world_);
    link_.run(call, stream, [&](NcclCalls& calls) {
      calls.all_gather(own.data, all.data, count_bytes(own), stream.native());
    });
    for (int other = 0; other < world_; ++other)
      terms_[static_cast<std::size_t>(other)] = all.slice(other * own.count(), {own.count()});
    sum_(terms_, own, stream);
  }
  staging_.end_use(stream);
}

void NcclSum::meet(const MetCall& call, Stream& stream) {
  staging_.begin_use(stream);
  link_.run(call, stream, [&](NcclCalls& calls) {
    calls.all_gather(staging_.slot(0, 1) + rank_ * static_cast<std::int64_t>(token_bytes),
                     staging_.slot(0, 1), token_bytes, stream.native());
  });
  staging_.end_use(stream);
}

}  // namespace strata
