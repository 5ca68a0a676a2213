#include "fake_cuda/streamed_toy.hpp"

#include "fake_cuda/streamed_kernels.hpp"

namespace strata::testing {

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

}  // namespace strata::testing
