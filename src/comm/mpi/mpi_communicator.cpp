#include "mpi_communicator.hpp"

#include <atomic>
#include <utility>
#include <vector>

#include "chunked_sum.hpp"
#include "comm/bulk_copy.hpp"
#include "comm/meeting.hpp"
#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

// All ranks add all of so few bytes, which saves the way back.
constexpr std::int64_t small_bytes_max = 4096;

std::span<std::byte> bytes_of(TensorView values) {
  return {static_cast<std::byte*>(values.data), static_cast<std::size_t>(values.bytes())};
}

class MpiCommunicator final : public Communicator, public Meeting {
 public:
  explicit MpiCommunicator(std::shared_ptr<MpiEndpoint> endpoint)
      : endpoint_(std::move(endpoint)),
        sum_(*endpoint_),
        parts_(static_cast<std::size_t>(endpoint_->num_ranks())) {}
  ~MpiCommunicator() override { MpiCommunicator::leave(); }

  int rank() const override { return endpoint_->rank(); }
  int world() const override { return endpoint_->num_ranks(); }

  void all_gather(TensorView shard, TensorView gathered, Stream& stream) override;
  void reduce_scatter(TensorView full, TensorView shard, Stream& stream) override;
  void all_reduce(TensorView values, Stream& stream) override;
  void broadcast(TensorView values, int root, Stream& stream) override;
  void send(TensorView values, int from, int to, Stream& stream) override;
  void barrier(Stream& stream) override { meet({}, stream); }

  std::uint64_t bytes_exchanged() const override { return bytes_exchanged_; }
  void abort(const std::string& reason) noexcept override { endpoint_->world().fail(reason); }
  std::string failure() const override { return endpoint_->world().failure(); }

  void meet(const MetCall& call) override;
  void leave() noexcept override {
    if (!std::exchange(has_left_, true)) endpoint_->leave();
  }

 private:
  void meet(const CallHeader& call, Stream& stream);
  void cut_evenly(std::int64_t count);
  TensorView part_of(TensorView values, int part) const;
  // Every rank's part of `values`, from where it is to all others.
  void gather_parts(TensorView values);
  void count_exchanged(TensorView shard);

  std::shared_ptr<MpiEndpoint> endpoint_;
  bool has_left_ = false;
  ChunkedSum sum_;
  std::vector<PartSpan> parts_;  // of the call at hand, by rank
  Transfers transfers_;
  std::atomic<std::uint64_t> bytes_exchanged_ = 0;  // read by any thread
};

// MPI takes the bytes when it is called, so the stream's earlier work must be done.
void MpiCommunicator::meet(const CallHeader& call, Stream& stream) {
  stream.synchronize();
  endpoint_->meet(call);
}

void MpiCommunicator::meet(const MetCall& call) {
  endpoint_->meet({.count = call.count,
                   .root = call.from,
                   .target = call.to,
                   .kind = call.kind,
                   .dtype = call.dtype});
}

void MpiCommunicator::all_gather(TensorView shard, TensorView gathered, Stream& stream) {
  ensure(gathered.count() == shard.count() * world() && gathered.dtype == shard.dtype);
  meet({.count = shard.count(), .kind = Collective::all_gather, .dtype = shard.dtype}, stream);
  cut_evenly(gathered.count());
  const TensorView own = gathered.slice(rank() * shard.count(), {shard.count()});
  bulk_copy(own.as<std::byte>(), shard.as<std::byte>(), static_cast<std::size_t>(shard.bytes()));
  gather_parts(gathered);
  count_exchanged(shard);
}

void MpiCommunicator::reduce_scatter(TensorView full, TensorView shard, Stream& stream) {
  ensure(full.count() == shard.count() * world() && full.dtype == shard.dtype);
  ensure(full.dtype == DType::f32 || full.dtype == DType::f64 || full.dtype == DType::bf16);
  meet({.count = full.count(), .kind = Collective::reduce_scatter, .dtype = full.dtype}, stream);
  cut_evenly(full.count());
  sum_.run(full, parts_, shard.as<std::byte>());
  count_exchanged(shard);
}

void MpiCommunicator::all_reduce(TensorView values, Stream& stream) {
  ensure(values.dtype == DType::f32 || values.dtype == DType::f64);
  meet({.count = values.count(), .kind = Collective::all_reduce, .dtype = values.dtype}, stream);
  if (values.bytes() <= small_bytes_max) {
    parts_.assign(parts_.size(), {0, values.count()});
    return sum_.run(values, parts_, values.as<std::byte>());
  }
  cut_evenly(values.count());
  sum_.run(values, parts_, part_of(values, rank()).as<std::byte>());
  gather_parts(values);
}

void MpiCommunicator::broadcast(TensorView values, int root, Stream& stream) {
  ensure(root >= 0 && root < world());
  meet(
      {.count = values.count(), .root = root, .kind = Collective::broadcast, .dtype = values.dtype},
      stream);
  if (rank() != root) endpoint_->receive(root, bytes_of(values), transfers_);
  for (int step = 1; step < world() && rank() == root; ++step)
    endpoint_->send((root + step) % world(), bytes_of(values), transfers_);
  endpoint_->finish(transfers_);
}

void MpiCommunicator::send(TensorView values, int from, int to, Stream& stream) {
  ensure(from >= 0 && from < world() && to >= 0 && to < world());
  meet({.count = values.count(),
        .root = from,
        .target = to,
        .kind = Collective::send,
        .dtype = values.dtype},
       stream);
  if (from == to) return;
  if (rank() == from) endpoint_->send(to, bytes_of(values), transfers_);
  if (rank() == to) endpoint_->receive(from, bytes_of(values), transfers_);
  endpoint_->finish(transfers_);
}

void MpiCommunicator::cut_evenly(std::int64_t count) {
  for (int part = 0; part < world(); ++part)
    parts_[static_cast<std::size_t>(part)] = {count * part / world(), count * (part + 1) / world()};
}

TensorView MpiCommunicator::part_of(TensorView values, int part) const {
  const PartSpan span = parts_[static_cast<std::size_t>(part)];
  return values.slice(span.begin, {span.count()});
}

// To the next rank first: at each step every rank sends to one rank and hears of one.
void MpiCommunicator::gather_parts(TensorView values) {
  for (int step = 1; step < world(); ++step) {
    const int from = (rank() + world() - step) % world(), to = (rank() + step) % world();
    endpoint_->receive(from, bytes_of(part_of(values, from)), transfers_);
    endpoint_->send(to, bytes_of(part_of(values, rank())), transfers_);
  }
  endpoint_->finish(transfers_);
}

void MpiCommunicator::count_exchanged(TensorView shard) {
  bytes_exchanged_ += static_cast<std::uint64_t>(shard.bytes() * (world() - 1));
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(std::shared_ptr<MpiEndpoint> endpoint) {
  return std::make_unique<MpiCommunicator>(std::move(endpoint));
}

}  // namespace strata
