#include "train/weights_of_masters.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "strata/core/error.hpp"
#include "strata/device/device.hpp"
#include "train/weight_elements.hpp"

namespace strata {
namespace {

class WeightsOfMasters {
 public:
  WeightsOfMasters(const PlannedRun& run, StateAccess& state, Communicator* control)
      : program_(run.program),
        state_(state),
        control_(control),
        host_(make_host_device({})),
        stream_(host_->make_stream("weights of masters")) {}

  void derive(int block) {
    const ShardId weight = program_.find(Role::weight, block);
    const ShardId master = program_.find(Role::master, block);
    if (!master.valid()) return;
    const int num_places = program_.num_slices(weight) * program_.slice_tiles(weight);
    for (int place = 0; place < num_places; ++place) {
      fill(master, weight, place);
      const int tile = program_.tile_at(weight, place);
      if (tile >= 0)
        state_.write(weight, tile,
                     [&](std::span<std::byte> bytes) { std::ranges::copy(bytes_, bytes.begin()); });
    }
  }

 private:
  bool is_sliced(ShardId shard) const { return program_.shard(shard).sharing == Sharing::sliced; }

  // bytes_ become the weights of a place, if this rank holds it.
  void fill(ShardId master, ShardId weight, int place) {
    bytes_.resize(static_cast<std::size_t>(
        storage_bytes(program_.shard(weight).dtype, program_.tile_count(weight, place))));
    const int tile = program_.tile_at(master, place);
    if (tile >= 0) round(master, tile, program_.shard(weight).dtype);
    if (is_sliced(master) && !is_sliced(weight) && program_.world > 1)
      control_->broadcast({bytes_.data(), DType::u8, {std::ssize(bytes_)}},
                          place / program_.slice_tiles(master), *stream_);
  }

  void round(ShardId master, int tile, DType dtype) {
    ensure(program_.shard(master).dtype == DType::f32);
    const auto source = state_.read(master, tile);
    values_.resize(source.size() / sizeof(float));
    widen_elements(source.data(), DType::f32, values_);
    store_elements(values_, dtype, bytes_.data());
  }

  const Program& program_;
  StateAccess& state_;
  Communicator* control_;
  std::unique_ptr<Device> host_;  // what is sent lies in host memory
  std::unique_ptr<Stream> stream_;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
};

}  // namespace

void derive_weights(const PlannedRun& run, StateAccess& state, Communicator* control) {
  WeightsOfMasters weights(run, state, control);
  for (std::size_t block = 0; block < run.program.blocks.size(); ++block)
    weights.derive(static_cast<int>(block));
}

}  // namespace strata
