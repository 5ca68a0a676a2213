#include <algorithm>
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

// The pair that turns so often over the original positions.
double pair_of_turns(const LlamaConfig& config, double turns) {
  const double positions_per_radian =
      config.rope_original_max_positions / (turns * 2 * std::numbers::pi);
  return static_cast<double>(config.head_dim) * std::log(positions_per_radian) /
         (2 * std::log(config.rope_theta));
}

// Pairs that turn often are kept, those that turn seldom stretched by `rope_factor`, and between
// the two there is a ramp over the pairs.
class YarnRamp {
 public:
  explicit YarnRamp(const LlamaConfig& config) : factor_(config.rope_factor) {
    double first = pair_of_turns(config, config.rope_beta_fast),
           last = pair_of_turns(config, config.rope_beta_slow);
    if (config.rope_truncates) first = std::floor(first), last = std::ceil(last);
    first_ = std::max(first, 0.0);
    last_ = std::min(last, static_cast<double>(config.head_dim - 1));
    if (first_ == last_) last_ += 0.001;  // as transformers
  }

  float frequency(std::int64_t pair, float plain) const {
    const double along = (static_cast<double>(pair) - first_) / (last_ - first_);
    const double stretched = std::clamp(along, 0.0, 1.0);
    const auto kept = static_cast<double>(plain);
    return static_cast<float>(kept / factor_ * stretched + kept * (1 - stretched));
  }

 private:
  double factor_, first_ = 0, last_ = 0;
};

std::vector<float> plain_frequencies(const LlamaConfig& config) {
  std::vector<float> frequencies;
  for (std::int64_t pair = 0; pair < config.head_dim / 2; ++pair)
    frequencies.push_back(plain_frequency(config, pair));
  return frequencies;
}

}  // namespace

std::vector<float> rope_inverse_frequencies(const LlamaConfig& config) {
  std::vector<float> frequencies = plain_frequencies(config);
  if (config.rope == Rope::linear)
    for (float& frequency : frequencies) frequency /= static_cast<float>(config.rope_factor);
  if (config.rope == Rope::llama3)
    for (float& frequency : frequencies) frequency = llama3_frequency(config, frequency);
  if (config.rope == Rope::yarn) {
    const YarnRamp ramp(config);
    for (std::size_t pair = 0; pair < frequencies.size(); ++pair)
      frequencies[pair] = ramp.frequency(static_cast<std::int64_t>(pair), frequencies[pair]);
  }
  return frequencies;
}

}  // namespace strata
