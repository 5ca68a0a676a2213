#include "comm/nccl/nccl_communicator.hpp"

#include <atomic>
#include <optional>
#include <utility>

#include "comm/nccl/nccl_calls.hpp"
#include "comm/nccl/nccl_sum.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

Meeting& meeting_of(Communicator& line) {
  auto* const meeting = dynamic_cast<Meeting*>(&line);
  ensure(meeting != nullptr);
  return *meeting;
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<Communicator> line, std::shared_ptr<NcclLink> link,
                   Device& device, const NcclRankOptions& options)
      : line_(std::move(line)),
        link_(std::move(link)),
        meeting_(meeting_of(*line_)),
        device_(device) {
    if (link_ != nullptr) sum_.emplace(*link_, device, options, rank(), world());
  }
  // The others learn that the rank has left when they miss it.
  ~NcclCommunicator() override {
    meeting_.leave();
    if (link_ != nullptr) link_->leave();
  }

  int rank() const override { return line_->rank(); }
  int world() const override { return line_->world(); }
  Completion completion() const override { return Completion::on_stream; }

  void all_gather(TensorView shard, TensorView gathered, Stream& stream) override;
  void reduce_scatter(TensorView full, TensorView shard, Stream& stream) override;
  void all_reduce(TensorView values, Stream& stream) override;
  void broadcast(TensorView values, int root, Stream& stream) override;
  void send(TensorView values, int from, int to, Stream& stream) override;
  void barrier(Stream& stream) override;

  void confirm() const override {
    if (link_ != nullptr && link_->has_cut_short()) throw Error(failure());
  }
  std::uint64_t bytes_exchanged() const override {
    return bytes_exchanged_.load(std::memory_order_relaxed);
  }
  void abort(const std::string& reason) noexcept override {
    line_->abort(reason);
    if (link_ != nullptr) link_->look_now();
  }
  std::string failure() const override { return line_->failure(); }

 private:
  // Returns whether there is anything for NCCL to do.
  bool meet(const MetCall& call, const TensorView& values, Stream& stream);
  void copy(TensorView target, TensorView source, Stream& stream);
  void count_exchanged(TensorView shard) {
    bytes_exchanged_.fetch_add(count_bytes(shard) * static_cast<std::uint64_t>(world() - 1),
                               std::memory_order_relaxed);
  }

  // Constant after construction.
  std::shared_ptr<Communicator> line_;
  std::shared_ptr<NcclLink> link_;
  Meeting& meeting_;
  Device& device_;
  // Of the thread that calls.
  std::optional<NcclSum> sum_;
  std::atomic<std::uint64_t> bytes_exchanged_ = 0;
};

// NCCL waits for ever for a rank that calls something else, so the calls are compared before.
bool NcclCommunicator::meet(const MetCall& call, const TensorView& values, Stream& stream) {
  ensure(stream.native() != nullptr);
  meeting_.meet(call);
  device_.use_on_this_thread();
  return link_ != nullptr && values.bytes() > 0;
}

void NcclCommunicator::copy(TensorView target, TensorView source, Stream& stream) {
  if (target.data == source.data || source.bytes() == 0) return;
  device_.copy(target.as<std::byte>(), source.as<std::byte>(), count_bytes(source),
               CopyKind::device_to_device, stream);
}

void NcclCommunicator::all_gather(TensorView shard, TensorView gathered, Stream& stream) {
  ensure(gathered.count() == shard.count() * world() && gathered.dtype == shard.dtype);
  const MetCall call{Collective::all_gather, shard.dtype, shard.count()};
  if (meet(call, shard, stream)) {
    link_->run(call, stream, [&](NcclCalls& calls) {
      calls.all_gather(shard.data, gathered.data, count_bytes(shard), stream.native());
    });
  } else {
    copy(gathered, shard, stream);
  }
  count_exchanged(shard);
}

void NcclCommunicator::reduce_scatter(TensorView full, TensorView shard, Stream& stream) {
  ensure(full.count() == shard.count() * world() && full.dtype == shard.dtype);
  ensure(full.dtype == DType::f32 || full.dtype == DType::f64 || full.dtype == DType::bf16);
  const MetCall call{Collective::reduce_scatter, full.dtype, full.count()};
  if (meet(call, shard, stream))
    sum_->scatter(call, full, shard, stream);
  else
    copy(shard, full, stream);
  count_exchanged(shard);
}

void NcclCommunicator::all_reduce(TensorView values, Stream& stream) {
  ensure(values.dtype == DType::f32 || values.dtype == DType::f64);
  const MetCall call{Collective::all_reduce, values.dtype, values.count()};
  if (meet(call, values, stream)) sum_->share(call, values, stream);
}

void NcclCommunicator::broadcast(TensorView values, int root, Stream& stream) {
  ensure(root >= 0 && root < world());
  const MetCall call{Collective::broadcast, values.dtype, values.count(), root};
  if (!meet(call, values, stream)) return;
  link_->run(call, stream, [&](NcclCalls& calls) {
    calls.broadcast(values.data, count_bytes(values), root, stream.native());
  });
}

void NcclCommunicator::send(TensorView values, int from, int to, Stream& stream) {
  ensure(from >= 0 && from < world() && to >= 0 && to < world());
  const MetCall call{Collective::send, values.dtype, values.count(), from, to};
  if (!meet(call, values, stream) || from == to || (rank() != from && rank() != to)) return;
  link_->run(call, stream, [&](NcclCalls& calls) {
    if (rank() == from) calls.send(values.data, count_bytes(values), to, stream.native());
    if (rank() == to) calls.receive(values.data, count_bytes(values), from, stream.native());
  });
}

void NcclCommunicator::barrier(Stream& stream) {
  meeting_.meet({});
  if (link_ == nullptr) return;
  device_.use_on_this_thread();
  sum_->meet({}, stream);
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(std::shared_ptr<Communicator> line,
                                                     std::shared_ptr<NcclLink> link, Device& device,
                                                     const NcclRankOptions& options) {
  return std::make_unique<NcclCommunicator>(std::move(line), std::move(link), device, options);
}

}  // namespace strata
