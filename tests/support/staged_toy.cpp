#include "support/staged_toy.hpp"

#include <vector>

namespace strata::testing {
namespace {

// Copies on the host of what a call on a device takes.
class HostCopies {
 public:
  HostCopies(Device& device, Stream& stream) : device_(device), stream_(stream) {}

  TensorView of(const TensorView& view, Access access) {
    if (view.empty()) return view;
    copies_.push_back(
        {view, access, std::vector<std::byte>(static_cast<std::size_t>(view.bytes()))});
    Copy& copy = copies_.back();
    if (access == Access::read || access == Access::update)
      device_.copy(copy.bytes.data(), view.as<std::byte>(), copy.bytes.size(),
                   CopyKind::device_to_host, stream_);
    return {copy.bytes.data(), view.dtype, view.shape};
  }
  void wait() { stream_.synchronize(); }
  void give_back() {
    for (const Copy& copy : copies_)
      if (copy.access != Access::read)
        device_.copy(copy.view.as<std::byte>(), copy.bytes.data(), copy.bytes.size(),
                     CopyKind::host_to_device, stream_);
  }

 private:
  struct Copy {
    TensorView view;
    Access access;
    std::vector<std::byte> bytes;
  };
  Device& device_;
  Stream& stream_;
  std::vector<Copy> copies_;
};

}  // namespace

void StagedModel::run(const Segment& segment, const SegmentViews& views, const StepArgs& args,
                      Stream& stream) {
  HostCopies copies(device_, stream);
  std::vector<TensorView> uses;
  for (std::size_t i = 0; i < views.uses.size(); ++i)
    uses.push_back(copies.of(views.uses[i], segment.uses[i].access));
  std::vector<std::byte> scratch(views.scratch.size());
  copies.wait();
  model_.run(segment, {uses, scratch}, args, stream);
  copies.give_back();
}

void StagedOptimizer::update(const TileUpdate& tile, const UpdateHyper& hyper,
                             const UpdateScalars& scalars, Stream& stream) {
  HostCopies copies(device_, stream);
  TileUpdate host = tile;
  host.gradient = copies.of(tile.gradient, Access::read);
  for (TensorView TileUpdate::*operand :
       {&TileUpdate::master, &TileUpdate::moment1, &TileUpdate::moment2, &TileUpdate::weight})
    host.*operand = copies.of(tile.*operand, Access::update);
  copies.wait();
  optimizer_.update(host, hyper, scalars, stream);
  copies.give_back();
}

}  // namespace strata::testing
