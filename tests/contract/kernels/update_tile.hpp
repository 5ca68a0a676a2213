#pragma once
// The operands of one optimizer pass over one tile, owned, in any layout.

#include <cstdint>
#include <string>
#include <vector>

#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {

struct UpdateLayout {
  UpdateRule rule = UpdateRule::adamw;
  DType gradient = DType::f32;
  DType master = DType::f32;   // u16: split
  DType weight = DType::bf16;  // i32: none wanted
  DType moments = DType::f32;

  std::string name() const;
};
// All that make sense.
std::vector<UpdateLayout> update_layouts();

// More ranges of decay than any engine takes at once.
std::vector<DecayRange> every_other_element(std::int64_t count);

class UpdateTile {
 public:
  // Elements [first, first + count) of a shard, `offset` elements past an aligned address.
  UpdateTile(const UpdateLayout& layout, std::int64_t first, std::int64_t count,
             std::int64_t offset = 0);

  // Everything at random: values of all sizes, moments as some earlier step left them.
  static UpdateTile random(const UpdateLayout& layout, std::int64_t count, std::uint64_t seed);
  // The same state but for a tile of it, at another alignment.
  UpdateTile cut(std::int64_t begin, std::int64_t count, std::int64_t offset) const;

  // The shard decays in a few odd ranges.
  UpdateArgs args() const;
  // All that a pass writes. NaNs are all alike.
  std::string bits() const;

  float master_value(std::int64_t i) const;
  void set_master(std::int64_t i, float value);

  const UpdateLayout layout;
  const std::int64_t first, count;
  Tensor gradient, master, moment1, moment2, weight;
  Tensor non_finite = zeros(DType::f64, {1});

 private:
  bool has_weight() const { return layout.weight != DType::i32; }
};

}  // namespace strata::testing
