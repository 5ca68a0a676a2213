#include "contract/kernels/update_tile.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "contract/kernels/exact_harness.hpp"
#include "strata/core/block_q8.hpp"

namespace strata::testing {
namespace {

const std::vector<DecayRange> decays = {{3, 70}, {300, 1024}, {1025, 1026}, {4000, 9000000}};

float* scales_of(const Tensor& moment) {
  return reinterpret_cast<float*>(moment.view().as<std::byte>() + q8_scales_begin(moment.count()));
}

void randomize_q8(Tensor& moment, PhiloxStream& random) {
  for (std::int64_t i = 0; i < moment.count(); ++i)
    moment.view().as<std::uint8_t>()[i] = static_cast<std::uint8_t>(random.next_below(256));
  for (std::int64_t block = 0; block < q8_num_blocks(moment.count()); ++block)
    scales_of(moment)[block] = std::ldexp(1.0f, static_cast<int>(random.next_below(60)) - 50);
}

enum class Signs : std::uint8_t { any, positive };

void randomize_moment(Tensor& moment, PhiloxStream& random, Signs signs) {
  if (moment.view().dtype == DType::q8) return randomize_q8(moment, random);
  for (std::int64_t i = 0; i < moment.count(); ++i) {
    const double value = mixed_value(random);
    moment.set(i, signs == Signs::positive ? std::abs(value) : value);
  }
}

void copy_part(const Tensor& from, std::int64_t begin, Tensor& to) {
  const auto element = static_cast<std::size_t>(dtype_bytes(from.view().dtype));
  std::memcpy(to.view().data, from.view().as<std::byte>() + begin * static_cast<int>(element),
              static_cast<std::size_t>(to.count()) * element);
  if (from.view().dtype != DType::q8) return;
  std::memcpy(scales_of(to), scales_of(from) + begin / q8_block_elements,
              static_cast<std::size_t>(q8_num_blocks(to.count())) * sizeof(float));
}

template <typename T>
void append(std::string& bits, T value) {
  bits.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_float(std::string& bits, float value) {
  append(bits, std::isnan(value) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(value));
}

void append_values(std::string& bits, const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    append_float(bits, static_cast<float>(tensor.at(i)));
}

void append_moment(std::string& bits, const Tensor& moment) {
  if (moment.view().dtype != DType::q8) return append_values(bits, moment);
  bits.append(moment.view().as<const char>(), static_cast<std::size_t>(moment.count()));
  for (std::int64_t block = 0; block < q8_num_blocks(moment.count()); ++block)
    append_float(bits, scales_of(moment)[block]);
}

std::string rule_name(UpdateRule rule) {
  constexpr const char* names[] = {"adamw", "adam", "sgd", "lion"};
  return names[static_cast<std::size_t>(rule)];
}

}  // namespace

std::string UpdateLayout::name() const {
  const auto text = [](DType dtype) { return std::string(dtype_name(dtype)); };
  return rule_name(rule) + " gradient " + text(gradient) + " master " + text(master) + " weight " +
         text(weight) + " moments " + text(moments);
}

std::vector<UpdateLayout> update_layouts() {
  std::vector<UpdateLayout> layouts;
  for (UpdateRule rule : {UpdateRule::adamw, UpdateRule::adam, UpdateRule::sgd, UpdateRule::lion})
    for (DType gradient : {DType::f32, DType::bf16})
      for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
        layouts.push_back({rule, gradient, DType::u16, DType::bf16, moments});
        for (DType weight : {DType::i32, DType::f32, DType::bf16})
          layouts.push_back({rule, gradient, DType::f32, weight, moments});
      }
  return layouts;
}

std::vector<DecayRange> every_other_element(std::int64_t count) {
  std::vector<DecayRange> ranges;
  for (std::int64_t i = 0; i < count; i += 2) ranges.push_back({i, i + 1});
  return ranges;
}

UpdateTile::UpdateTile(const UpdateLayout& of, std::int64_t first_element, std::int64_t elements,
                       std::int64_t offset)
    : layout(of),
      first(first_element),
      count(elements),
      gradient(of.gradient, {elements}, offset),
      master(of.master, {elements}, offset),
      moment1(of.moments, {elements}, of.moments == DType::q8 ? 4 * offset : offset),
      moment2(of.moments, {elements}, of.moments == DType::q8 ? 4 * offset : offset),
      weight(of.weight, {elements}, offset) {}

UpdateTile UpdateTile::random(const UpdateLayout& layout, std::int64_t count, std::uint64_t seed) {
  PhiloxStream random(seed, 0);
  UpdateTile tile(layout, 0, count);
  for (std::int64_t i = 0; i < count; ++i) tile.gradient.set(i, mixed_value(random));
  for (std::int64_t i = 0; i < count; ++i)
    tile.set_master(i, static_cast<float>(mixed_value(random)));
  randomize_moment(tile.moment1, random, Signs::any);
  randomize_moment(tile.moment2, random, Signs::positive);
  return tile;
}

UpdateTile UpdateTile::cut(std::int64_t begin, std::int64_t elements, std::int64_t offset) const {
  UpdateTile tile(layout, first + begin, elements, offset);
  copy_part(gradient, begin, tile.gradient);
  copy_part(master, begin, tile.master);
  copy_part(moment1, begin, tile.moment1);
  copy_part(moment2, begin, tile.moment2);
  if (has_weight()) copy_part(weight, begin, tile.weight);
  return tile;
}

UpdateArgs UpdateTile::args() const {
  UpdateArgs args;
  args.rule = layout.rule;
  args.gradient = gradient;
  args.master = master;
  args.moment1 = moment1;
  args.moment2 = moment2;
  if (has_weight()) args.weight = weight;
  args.non_finite = non_finite;
  args.first = first;
  args.decays = decays;
  args.learning_rate = 3e-4;
  args.weight_decay = 0.1;
  args.gradient_scale = 0.37f;
  args.step = 3;
  args.seed = 11;
  args.shard = 5;
  return args;
}

float UpdateTile::master_value(std::int64_t i) const {
  if (layout.master == DType::f32) return master.view().as<float>()[i];
  return join_master(weight.view().as<bfloat16>()[i], master.view().as<std::uint16_t>()[i]);
}

void UpdateTile::set_master(std::int64_t i, float value) {
  if (layout.master == DType::f32) return master.set(i, static_cast<double>(value));
  master.view().as<std::uint16_t>()[i] = master_low_bits(value);
  weight.view().as<bfloat16>()[i] = weight_to_bfloat16(value);
}

std::string UpdateTile::bits() const {
  std::string bits;
  for (std::int64_t i = 0; i < count; ++i) append_float(bits, master_value(i));
  if (has_weight()) append_values(bits, weight);
  append_moment(bits, moment1);
  if (has_moment2(layout.rule)) append_moment(bits, moment2);
  append(bits, non_finite.at(0));
  return bits;
}

}  // namespace strata::testing
