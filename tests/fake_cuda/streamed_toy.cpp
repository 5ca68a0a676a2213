#include "fake_cuda/streamed_toy.hpp"

#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

FakeAccess access_of(const TensorView& view, Touch touch) {
  return {view.as<const std::byte>(), static_cast<std::uint64_t>(view.bytes()), touch};
}

// The exact family on the stream; of the rest the executor calls nothing.
class StreamedKernels final : public Kernels {
 public:
  StreamedKernels(FakeCuda& fake, Kernels& host) : fake_(fake), host_(host) {}
  std::string_view name() const override { return "streamed"; }

  void accumulate(TensorView source, TensorView target, Accumulate mode, Stream& stream) override {
    fake_.launch(stream.native(), "accumulate",
                 {access_of(source, Touch::reads), access_of(target, Touch::writes)},
                 [=, this, &stream] { host_.accumulate(source, target, mode, stream); });
  }
  void square_sums(TensorView values, TensorView partials, Stream& stream) override {
    fake_.launch(stream.native(), "square_sums",
                 {access_of(values, Touch::reads), access_of(partials, Touch::writes)},
                 [=, this, &stream] { host_.square_sums(values, partials, stream); });
  }

  void embedding_forward(TensorView, TensorView, TensorView, Stream&) override { ensure(false); }
  void embedding_backward(TensorView, TensorView, TensorView, std::span<std::byte>,
                          Stream&) override {
    ensure(false);
  }
  std::uint64_t embedding_scratch_bytes(std::int64_t, std::int64_t, std::int64_t) const override {
    return 0;
  }
  void rmsnorm_forward(TensorView, TensorView, float, TensorView, TensorView, Stream&) override {
    ensure(false);
  }
  void rmsnorm_backward(TensorView, TensorView, TensorView, TensorView, TensorView, Accumulate,
                        TensorView, std::span<std::byte>, Stream&) override {
    ensure(false);
  }
  std::uint64_t rmsnorm_scratch_bytes(std::int64_t, std::int64_t) const override { return 0; }
  void linear_forward(TensorView, TensorView, TensorView, TensorView, Accumulate,
                      Stream&) override {
    ensure(false);
  }
  void linear_backward_input(TensorView, TensorView, TensorView, Accumulate, Stream&) override {
    ensure(false);
  }
  void linear_backward_weight(TensorView, TensorView, TensorView, Accumulate, Stream&) override {
    ensure(false);
  }
  void bias_backward(TensorView, TensorView, Stream&) override { ensure(false); }
  void rope(TensorView, TensorView, std::span<const float>, Rotation, Stream&) override {
    ensure(false);
  }
  void attention_forward(const AttentionArgs&, Stream&) override { ensure(false); }
  void attention_backward(const AttentionArgs&, Stream&) override { ensure(false); }
  std::uint64_t attention_scratch_bytes(std::int64_t, std::int64_t, std::int64_t,
                                        std::int64_t) const override {
    return 0;
  }
  void swiglu_forward(TensorView, TensorView, TensorView, Stream&) override { ensure(false); }
  void swiglu_backward(TensorView, TensorView, TensorView, TensorView, TensorView,
                       Stream&) override {
    ensure(false);
  }
  void cross_entropy(const CrossEntropyArgs&, Stream&) override { ensure(false); }
  void add(TensorView, TensorView, TensorView, Stream&) override { ensure(false); }
  void cast(TensorView, TensorView, Stream&) override { ensure(false); }
  void sum(TensorView, TensorView, Stream&) override { ensure(false); }
  void cast_weight(TensorView, TensorView, Stream&) override { ensure(false); }
  void update(const UpdateArgs&, Stream&) override { ensure(false); }

 private:
  FakeCuda& fake_;
  Kernels& host_;
};

}  // namespace

// The views end with the call, the arguments with the step.
void StreamedModel::run(const Segment& segment, const SegmentViews& views, const StepArgs& args,
                        Stream& stream) {
  std::vector<TensorView> uses(views.uses.begin(), views.uses.end());
  std::vector<FakeAccess> accesses{{views.scratch.data(), views.scratch.size(), Touch::writes}};
  for (std::size_t i = 0; i < uses.size(); ++i)
    accesses.push_back(
        access_of(uses[i], segment.uses[i].access == Access::read ? Touch::reads : Touch::writes));
  if (views.scratch.empty()) accesses.erase(accesses.begin());
  fake_.launch(stream.native(), segment.name, accesses,
               [this, &segment, uses = std::move(uses), scratch = views.scratch, &args, &stream] {
                 model_.run(segment, {uses, scratch}, args, stream);
               });
}

void StreamedOptimizer::update(const TileUpdate& tile, const UpdateHyper& hyper,
                               const UpdateScalars& scalars, Stream& stream) {
  std::vector<FakeAccess> accesses{access_of(tile.gradient, Touch::reads)};
  for (const TensorView& view : {tile.master, tile.moment1, tile.moment2, tile.weight})
    if (!view.empty()) accesses.push_back(access_of(view, Touch::writes));
  fake_.launch(stream.native(), tile.segment->name, accesses,
               [=, this, &stream] { optimizer_.update(tile, hyper, scalars, stream); });
}

std::unique_ptr<Kernels> make_streamed_kernels(FakeCuda& fake, Kernels& host) {
  return std::make_unique<StreamedKernels>(fake, host);
}

}  // namespace strata::testing
