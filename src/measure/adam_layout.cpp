#include <fmt/format.h>

#include <array>

#include "strata/core/error.hpp"
#include "strata/measure/adam_passes.hpp"

namespace strata {
namespace {

constexpr std::array gradients = {DType::f32, DType::bf16};
constexpr std::array masters = {DType::f32, DType::u16};
constexpr std::array moment_formats = {DType::f32, DType::bf16, DType::q8};

double bytes_of(DType dtype) {
  return static_cast<double>(storage_bytes(dtype, q8_block_elements)) / q8_block_elements;
}

std::string_view master_name(DType master) {
  return master == DType::u16 ? "split" : dtype_name(master);
}

}  // namespace

std::string state_layout_name(const AdamLayout& layout) {
  return fmt::format("{}/{}/{}", dtype_name(layout.gradient), master_name(layout.master),
                     dtype_name(layout.moments));
}

std::vector<AdamLayout> all_state_layouts(UpdateRule rule) {
  std::vector<AdamLayout> layouts;
  for (const DType gradient : gradients)
    for (const DType master : masters)
      for (const DType moments : moment_formats)
        layouts.push_back({rule, gradient, master, moments});
  return layouts;
}

AdamLayout parse_state_layout(std::string_view name, UpdateRule rule) {
  std::string known;
  for (const AdamLayout& layout : all_state_layouts(rule)) {
    if (name == state_layout_name(layout)) return layout;
    known += (known.empty() ? "" : ", ") + state_layout_name(layout);
  }
  throw ConfigError(
      fmt::format("no layout is named '{}' (gradient/master/moments); known are {}", name, known));
}

double state_bytes(const AdamLayout& layout) {
  const double moments = bytes_of(layout.moments);
  return bytes_of(layout.master) + (has_moment2(layout.rule) ? 2 : 1) * moments;
}

double update_pass_bytes(const AdamLayout& layout) {
  // A split master's weight is read as well as written.
  const double weight = bytes_of(DType::bf16) * (layout.master == DType::u16 ? 2 : 1);
  return bytes_of(layout.gradient) + 2 * state_bytes(layout) + weight;
}

}  // namespace strata
