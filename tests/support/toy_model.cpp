#include "support/toy_model.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "strata/core/dtype.hpp"

namespace strata::testing {
namespace {

std::span<float> floats(const TensorView& view) {
  return {view.as<float>(), static_cast<std::size_t>(view.count())};
}

float at(std::span<const float> values, std::size_t i) { return values[i % values.size()]; }

// A value that depends on every element.
float mean(std::span<const float> values) {
  float sum = 0;
  for (float v : values) sum += v;
  return sum / static_cast<float>(values.size());
}

void embed(const SegmentViews& v) {
  const auto weight = floats(v.uses[0]), out = floats(v.uses[2]);
  const auto* tokens = v.uses[1].as<std::int32_t>();
  const auto count = static_cast<std::size_t>(v.uses[1].count());
  const float shift = 0.001f * mean(weight);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = at(weight, static_cast<std::size_t>(tokens[i % count]) * 31 + i) + shift;
}

// What backward would have to compute again is the input, here kept three times over.
void save(std::span<const float> in, std::span<float> saved) {
  for (std::size_t i = 0; i < saved.size(); ++i) saved[i] = at(in, i);
}

// The mean of the kept input, which is another if any copy was hurt.
float mean_of_saved(std::span<const float> saved) {
  const std::size_t n = saved.size() / 3;
  return mean(saved.first(n)) + (mean(saved.subspan(n, n)) - mean(saved.last(n)));
}

void layer(const SegmentViews& v) {
  const auto weight = floats(v.uses[0]), in = floats(v.uses[1]), out = floats(v.uses[2]);
  const float shift = 0.01f * mean(weight);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = 0.5f * in[i] + at(weight, i) + shift;
  if (v.uses.size() > 3) save(in, floats(v.uses[3]));
}

// To a multiple of 2^-22, the spacing of floats from 2 to 4. Sums of such values, up to 4, are
// exact in any order: ranks and micro-batches may trade places.
float rounded(float value) { return value + 3.0f - 3.0f; }

void put(float& to, float value) { to = value; }
void put(bfloat16& to, float value) { to = to_bfloat16(value); }

template <typename T>
void contribute(std::span<T> out, std::span<const float> dy, float seed) {
  for (std::size_t begin = 0; begin < out.size(); begin += dy.size())
    for (std::size_t j = begin; j < std::min(begin + dy.size(), out.size()); ++j)
      put(out[j], rounded(dy[j - begin] * (0.01f * static_cast<float>(1 + j % 7)) + 1e-4f * seed));
}

void contribution(const TensorView& out, std::span<const float> dy, float seed) {
  const auto count = static_cast<std::size_t>(out.count());
  if (out.dtype == DType::f32) return contribute(std::span(out.as<float>(), count), dy, seed);
  contribute(std::span(out.as<bfloat16>(), count), dy, seed);
}

void loss(const SegmentViews& v, const StepArgs& args) {
  const auto weight = floats(v.uses[0]), in = floats(v.uses[1]), dx = floats(v.uses[4]);
  const bool tied = v.uses.size() > 6;
  const float tie = tied ? mean(floats(v.uses[6])) : 0.0f;
  const float scale = static_cast<float>(args.loss_scale);
  double sum = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    sum += static_cast<double>((in[i] - 0.3f) * (in[i] - 0.3f) * scale) +
           static_cast<double>(at(weight, i) * scale * 0.1f + tie * 0.01f);
    dx[i] = 2 * (in[i] - 0.3f) * scale + 0.001f * tie;
  }
  *v.uses[3].as<double>() = sum;
  contribution(v.uses[5], dx, mean(in));
  if (tied) contribution(v.uses[7], dx, tie);
}

void score(const SegmentViews& v, const StepArgs& args) {
  const auto weight = floats(v.uses[0]), in = floats(v.uses[1]);
  double sum = 0;
  for (std::size_t i = 0; i < in.size(); ++i)
    sum += static_cast<double>(in[i] * in[i] + at(weight, i)) * args.loss_scale;
  *v.uses[3].as<double>() = sum;
}

void backward(const SegmentViews& v) {
  const auto weight = floats(v.uses[0]), in = floats(v.uses[1]), dy = floats(v.uses[2]),
             dx = floats(v.uses[3]);
  for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = 0.5f * dy[i] + 1e-3f * at(weight, i);
  const bool kept = v.uses.size() > 5;
  contribution(v.uses[4], dy, kept ? mean_of_saved(floats(v.uses[5])) : mean(in));
}

void backward_embedding(const SegmentViews& v) {
  const auto dy = floats(v.uses[1]);
  contribution(v.uses[2], dy, static_cast<float>(v.uses[0].as<std::int32_t>()[0]));
}

void produce_weight(const TileUpdate& tile, float rate, const UpdateScalars& scalars) {
  const auto gradient = floats(tile.gradient), master = floats(tile.master),
             m = floats(tile.moment1), s = floats(tile.moment2);
  if (scalars.apply != 0)
    for (std::size_t i = 0; i < master.size(); ++i) {
      const float g = gradient[i] * scalars.clip_factor;
      m[i] = 0.9f * m[i] + g;
      s[i] = 0.99f * s[i] + g * g;
      master[i] -= rate * m[i] / (1 + s[i]);
    }
  std::memcpy(tile.weight.data, tile.master.data, static_cast<std::size_t>(tile.master.bytes()));
}

// The value is the sum of weight and master.
void update_weight(const TileUpdate& tile, float rate, const UpdateScalars& scalars) {
  const auto gradient = floats(tile.gradient), master = floats(tile.master),
             m = floats(tile.moment1), weight = floats(tile.weight);
  if (scalars.apply == 0) return;
  for (std::size_t i = 0; i < master.size(); ++i) {
    m[i] = 0.9f * m[i] + gradient[i] * scalars.clip_factor;
    const float sum = weight[i] + master[i] - rate * m[i];
    weight[i] = 0.75f * sum;
    master[i] = sum - weight[i];
  }
}

}  // namespace

void ToyModel::run(const Segment& segment, const SegmentViews& views, const StepArgs& args,
                   Stream&) {
  std::ranges::fill(views.scratch, std::byte{0xab});
  switch (segment.kind) {
    case SegmentKind::forward:
      return segment.block == 0 ? embed(views) : layer(views);
    case SegmentKind::loss:
      return loss(views, args);
    case SegmentKind::score:
      return score(views, args);
    case SegmentKind::backward:
      return segment.block == 0 ? backward_embedding(views) : backward(views);
    default:
      return;
  }
}

void ToyOptimizer::update(const TileUpdate& tile, const UpdateHyper& hyper,
                          const UpdateScalars& scalars, Stream&) {
  if (tile.moment2.empty()) return update_weight(tile, hyper.learning_rate, scalars);
  produce_weight(tile, hyper.learning_rate, scalars);
}

}  // namespace strata::testing
