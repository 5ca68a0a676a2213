#include <cmath>
#include <numbers>
#include <vector>

#include "strata/model/model.hpp"

namespace strata {
namespace {

// transformers takes the power and its reciprocal each in fp32; rounding at the same two points
// keeps long positions' angles equal to its own.
float plain_frequency(const LlamaConfig& config, std::int64_t pair) {
  const double exponent = static_cast<double>(2 * pair) / static_cast<double>(config.head_dim);
  return 1.0f / static_cast<float>(std::pow(config.rope_theta, exponent));
}

// Long wavelengths are stretched by `rope_factor`, short ones kept, those between blended.
float llama3_frequency(const LlamaConfig& config, float plain) {
  const double wavelength = 2 * std::numbers::pi / static_cast<double>(plain);
  const double turns = config.rope_original_max_positions / wavelength;
  if (turns > config.rope_high_freq_factor) return plain;
  const double stretched = static_cast<double>(plain) / config.rope_factor;
  if (turns < config.rope_low_freq_factor) return static_cast<float>(stretched);
  const double smooth = (turns - config.rope_low_freq_factor) /
                        (config.rope_high_freq_factor - config.rope_low_freq_factor);
  return static_cast<float>((1 - smooth) * stretched + smooth * static_cast<double>(plain));
}

}  // namespace

std::vector<float> rope_inverse_frequencies(const LlamaConfig& config) {
  std::vector<float> frequencies;
  for (std::int64_t pair = 0; pair < config.head_dim / 2; ++pair) {
    const float plain = plain_frequency(config, pair);
    frequencies.push_back(config.rope == Rope::llama3 ? llama3_frequency(config, plain) : plain);
  }
  return frequencies;
}

}  // namespace strata
