#pragma once
// Where each parameter of a block lies in the block's flat vector. One pass over a block's
// parameters makes both the public BlockSpec and the slices its kernels use, so the two cannot
// disagree.

#include <cstdint>
#include <string>
#include <vector>

#include "strata/core/tensor_view.hpp"
#include "strata/model/model.hpp"

namespace strata {

// One parameter's place in a flat vector; absent (an empty view) when the config has no such
// parameter.
struct ParameterSlice {
  std::int64_t offset = 0;
  Shape shape;

  bool present() const { return shape.rank > 0; }
  TensorView of(const TensorView& flat) const {
    return present() ? flat.slice(offset, shape) : TensorView{};
  }
};

struct LinearSlices {
  ParameterSlice weight, bias;
};

struct EmbeddingLayout {
  ParameterSlice table;
};

struct LayerLayout {
  ParameterSlice input_norm;
  LinearSlices query, key, value, output;
  ParameterSlice query_norm, key_norm;  // of each head; absent without query_key_norm
  ParameterSlice post_attention_norm;
  LinearSlices gate, up, down;
};

struct HeadLayout {
  ParameterSlice norm;
  ParameterSlice projection;  // absent when the head is tied to the embedding
};

// Elements of a flat vector that belong to no parameter.
struct AlignmentGap {
  std::int64_t offset = 0, count = 0;
};
std::vector<AlignmentGap> alignment_gaps(const BlockSpec& block);

struct LlamaLayout {
  explicit LlamaLayout(const LlamaConfig& config);

  std::vector<BlockSpec> blocks;  // embedding, layers, head
  EmbeddingLayout embedding;
  LayerLayout layer;  // the same for every layer
  HeadLayout head;
};

}  // namespace strata
