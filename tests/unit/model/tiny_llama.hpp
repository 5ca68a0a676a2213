#pragma once
// Seeded models and text of a size for tests, and how far two tensors lie apart.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/core/philox.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/model/model.hpp"
#include "unit/model/model_harness.hpp"

namespace strata::test {

// Sizes off every power of two, and small ones of which most leave alignment gaps.
inline LlamaConfig tiny_llama() {
  LlamaConfig config;
  config.vocab_size = 53;
  config.hidden_size = 24;
  config.intermediate_size = 36;
  config.num_layers = 2;
  config.num_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 8;
  config.max_positions = 128;
  return config;
}

inline LlamaConfig tied_llama() {
  LlamaConfig config = tiny_llama();
  config.tie_word_embeddings = true;
  return config;
}

// With norms of the heads of q and k, as Qwen3 has them.
inline LlamaConfig tiny_qwen3() {
  LlamaConfig config = tiny_llama();
  config.query_key_norm = true;
  return config;
}

inline std::unique_ptr<Kernels> make_kernels(std::string_view name) {
  if (name == "ref") return make_ref_kernels();
  return make_cpu_kernels({.num_threads = 2});
}

inline std::vector<float> random_values(std::int64_t count, float mean, std::uint64_t stream) {
  PhiloxStream random(7, stream);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = mean + 0.2f * static_cast<float>(random.next_normal());
  return values;
}

inline void set_random_weights(ModelHarness& harness) {
  std::uint64_t stream = 0;
  for (const BlockSpec& block : harness.model().blocks()) {
    for (const ParameterSpec& parameter : block.parameters) {
      const float mean = parameter.name.ends_with("norm.weight") ? 1.0f : 0.0f;
      harness.set_weight(parameter.name, random_values(parameter.count(), mean, ++stream));
    }
  }
}

// Documents of these lengths in one row; a document's last token and every seventh token are not
// trained.
inline MicroBatch packed_row(std::span<const std::int64_t> lengths, std::int64_t vocab_size,
                             std::uint64_t stream) {
  PhiloxStream random(11, stream);
  MicroBatch row;
  for (std::int64_t length : lengths) {
    const auto begin = static_cast<std::int32_t>(row.tokens.size());
    for (std::int64_t i = 0; i < length; ++i) {
      const auto vocab = static_cast<std::uint64_t>(vocab_size);
      row.tokens.push_back(static_cast<std::int32_t>(random.next_below(vocab)));
      const auto next = static_cast<std::int32_t>(random.next_below(vocab));
      row.labels.push_back(i + 1 == length || i % 7 == 3 ? -1 : next);
      row.document_start.push_back(begin);
    }
  }
  return row;
}

// Tokens [begin, begin + count) of a row, which begin a document, as a row of their own.
inline MicroBatch part_of(const MicroBatch& row, std::int64_t begin, std::int64_t count) {
  const auto part = [&](const std::vector<std::int32_t>& values) {
    return std::vector<std::int32_t>(values.begin() + begin, values.begin() + begin + count);
  };
  MicroBatch cut{part(row.tokens), part(row.labels), part(row.document_start)};
  for (std::int32_t& start : cut.document_start) start -= static_cast<std::int32_t>(begin);
  return cut;
}

inline double loss_scale_of(std::span<const MicroBatch> rows) {
  std::int64_t trained = 0;
  for (const MicroBatch& row : rows) {
    trained += std::ranges::count_if(row.labels, [](std::int32_t label) { return label >= 0; });
  }
  return 1.0 / static_cast<double>(trained);
}

// The largest difference, relative to the largest expected element.
inline double relative_error(std::span<const float> actual, std::span<const float> expected) {
  ensure(actual.size() == expected.size());
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error =
        std::abs(static_cast<double>(actual[i]) - static_cast<double>(expected[i]));
    if (std::isnan(error)) return error;
    difference = std::max(difference, error);
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
  }
  return largest > 0 ? difference / largest : difference;
}

inline double relative_error(double actual, double expected) {
  return std::abs(actual - expected) / std::abs(expected);
}

struct WorstGradient {
  std::string name;
  double error = 0;
};

inline WorstGradient worst_gradient(ModelHarness& actual, const ModelHarness& expected) {
  WorstGradient worst;
  for (const BlockSpec& block : actual.model().blocks()) {
    for (const ParameterSpec& parameter : block.parameters) {
      const double error =
          relative_error(actual.gradient(parameter.name), expected.gradient(parameter.name));
      if (std::isnan(error)) return {parameter.name, error};
      if (error > worst.error) worst = {parameter.name, error};
    }
  }
  return worst;
}

}  // namespace strata::test
