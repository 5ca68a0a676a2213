#include "fake_nccl/nccl_ranks_of_test.hpp"

#include <fmt/format.h>

#include <utility>

#include "src/comm/collective.hpp"
#include "src/comm/rank_sum.hpp"
#include "src/device/cuda/cuda_device.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

FakeCudaOptions with_devices(FakeCudaOptions options, int world) {
  options.num_devices = world;
  return options;
}

bool lies_in(const TensorView& part, const TensorView& whole) {
  const auto* const begin = whole.as<const std::byte>();
  return part.as<const std::byte>() >= begin && part.as<const std::byte>() < begin + whole.bytes();
}

class HostedRank final : public Communicator {
 public:
  HostedRank(FakeCuda& cuda, RankLinks& links, NcclJob& job, const NcclTestOptions& options)
      : device_(make_cuda_device(cuda, links.data->rank(), {})),
        staging_(device_->allocate(options.staging_bytes_per_rank *
                                   static_cast<std::uint64_t>(links.data->world()))),
        stream_(device_->make_stream("comm")) {
    job.join(links, *device_,
             {.staging = {staging_.data(), staging_.bytes()},
              .sum = make_streamed_sum(cuda),
              .timeout_s = 60,
              .watch_s = 0.001,
              .soon_s = options.soon_s});
    inner_ = std::move(links.data);
    ensure(inner_->completion() == Completion::on_stream);
  }

  int rank() const override { return inner_->rank(); }
  int world() const override { return inner_->world(); }

  void all_gather(TensorView shard, TensorView gathered, Stream& stream) override {
    stream.synchronize();
    const Slab whole = to_device(gathered), part = to_device(shard);
    inner_->all_gather(placed(shard, part, gathered, whole), at(gathered, whole), *stream_);
    to_host(gathered, whole, Collective::all_gather);
  }
  void reduce_scatter(TensorView full, TensorView shard, Stream& stream) override {
    stream.synchronize();
    const Slab whole = to_device(full), part = to_device(shard);
    const TensorView own = placed(shard, part, full, whole);
    inner_->reduce_scatter(at(full, whole), own, *stream_);
    to_host(full, whole, Collective::reduce_scatter);
    if (!lies_in(shard, full)) to_host(shard, part, Collective::reduce_scatter);
  }
  void all_reduce(TensorView values, Stream& stream) override {
    carry(values, stream, Collective::all_reduce,
          [&](TensorView own) { inner_->all_reduce(own, *stream_); });
  }
  void broadcast(TensorView values, int root, Stream& stream) override {
    carry(values, stream, Collective::broadcast,
          [&](TensorView own) { inner_->broadcast(own, root, *stream_); });
  }
  void send(TensorView values, int from, int to, Stream& stream) override {
    if (values.data == nullptr) return inner_->send(values, from, to, *stream_);
    carry(values, stream, Collective::send,
          [&](TensorView own) { inner_->send(own, from, to, *stream_); });
  }
  void barrier(Stream& stream) override {
    stream.synchronize();
    inner_->barrier(*stream_);
    finish(Collective::barrier);
  }
  std::uint64_t bytes_exchanged() const override { return inner_->bytes_exchanged(); }
  void abort(const std::string& reason) noexcept override { inner_->abort(reason); }
  std::string failure() const override { return inner_->failure(); }

 private:
  template <typename Work>
  void carry(TensorView values, Stream& stream, Collective kind, const Work& work) {
    stream.synchronize();
    const Slab slab = to_device(values);
    work(at(values, slab));
    to_host(values, slab, kind);
  }

  static TensorView at(TensorView view, const Slab& slab) {
    return {slab.data(), view.dtype, view.shape};
  }
  // Where a part lies that may be one of the whole.
  static TensorView placed(TensorView part, const Slab& own, TensorView whole, const Slab& slab) {
    if (!lies_in(part, whole)) return at(part, own);
    return {slab.data() + (part.as<std::byte>() - whole.as<std::byte>()), part.dtype, part.shape};
  }

  Slab to_device(TensorView view) {
    device_->use_on_this_thread();
    const auto bytes = static_cast<std::uint64_t>(view.bytes());
    Slab slab = device_->allocate(bytes);
    if (bytes > 0)
      device_->copy(slab.data(), view.as<std::byte>(), bytes, CopyKind::host_to_device, *stream_);
    return slab;
  }
  void to_host(TensorView view, const Slab& slab, Collective kind) {
    finish(kind);
    if (slab.bytes() == 0) return;
    device_->copy(view.as<std::byte>(), slab.data(), slab.bytes(), CopyKind::device_to_host,
                  *stream_);
  }
  // A collective that was cut short has left rubbish.
  void finish(Collective kind) {
    device_->use_on_this_thread();
    stream_->synchronize();
    try {
      inner_->confirm();
    } catch (const Error& error) {
      throw Error(fmt::format("{} on rank {} of {} failed: {}", collective_name(kind), rank(),
                              world(), error.what()));
    }
  }

  std::unique_ptr<Device> device_;
  Slab staging_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Communicator> inner_;
};

}  // namespace

DeviceSum make_streamed_sum(FakeCuda& cuda) {
  return [&cuda](std::span<const TensorView> terms, TensorView total, Stream& stream) {
    std::vector<FakeAccess> accesses{
        {total.as<std::byte>(), static_cast<std::uint64_t>(total.bytes()), Touch::writes}};
    std::vector<const std::byte*> sources;
    for (const TensorView& term : terms) {
      sources.push_back(term.as<const std::byte>());
      accesses.push_back({sources.back(), static_cast<std::uint64_t>(term.bytes()), Touch::reads});
    }
    cuda.launch(stream.native(), "rank_sum", accesses, [sources, total] {
      sum_ranks(sources, total.dtype, total.count(), total.as<std::byte>());
    });
  };
}

NcclMachine::NcclMachine(int world, const NcclTestOptions& options)
    : options_(options),
      cuda_(with_devices(options.cuda, world)),
      nccl_(cuda_, options.nccl),
      job_(make_nccl_job(world == 1 ? nullptr : &nccl_, {.inside_s = 60, .clock = options.clock})) {
}

void NcclMachine::join(RankLinks& links) {
  links.data = std::make_unique<HostedRank>(cuda_, links, *job_, options_);
}

}  // namespace strata::testing
