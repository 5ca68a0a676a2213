// The random bits of stochastic rounding look random where it matters: each value is uniform, and
// neither an element's bits of different steps nor its two moments' bits go together.

#include "kernels/common/update_random.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace strata {
namespace {

constexpr std::int64_t count = 1 << 16;
constexpr double limit = 5 / 256.0;  // five deviations of the mean of 2^16 products

// In [-sqrt 3, sqrt 3], so of mean 0 and deviation 1 if uniform.
double centred(std::uint32_t bits, int width) {
  return (static_cast<double>(bits) / std::ldexp(1.0, width) - 0.5) * std::sqrt(12.0);
}

std::uint32_t bits_of(std::int64_t step, std::int64_t element) {
  UpdateArgs args;
  args.step = step;
  args.seed = 3;
  args.shard = 1;
  return random_bits(UpdateRandom(args).chunk_key(element / random_chunk_elements),
                     static_cast<std::uint32_t>(element % random_chunk_elements));
}

template <typename F>
double mean(F f) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += f(i);
  return sum / count;
}

TEST(UpdateRandom, IsUniformOverElementsAndOverSteps) {
  for (const bool over_steps : {false, true}) {
    std::vector<int> bins(64);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t bits = over_steps ? bits_of(i + 1, 77) : bits_of(1, i);
      ++bins[random16_moment1(bits) >> 10];
      ++bins[random16_moment2(bits) >> 10];
    }
    double chi_square = 0;
    const double expected = 2.0 * count / 64;
    for (const int bin : bins) chi_square += (bin - expected) * (bin - expected) / expected;
    EXPECT_LT(chi_square, 120) << "63 degrees of freedom";
  }
}

TEST(UpdateRandom, DoesNotRepeatAnElementsBitsInTheNextStep) {
  for (const int width : {16, 20}) {
    const auto value = [&](std::int64_t step, std::int64_t i) {
      const std::uint32_t bits = bits_of(step, i);
      return centred(width == 16 ? random16_moment2(bits) : random20_moment2(bits), width);
    };
    EXPECT_LT(std::abs(mean([&](std::int64_t i) { return value(1, i) * value(2, i); })), limit);
    EXPECT_LT(std::abs(mean([&](std::int64_t i) { return value(i + 1, 5) * value(i + 2, 5); })),
              limit);
  }
}

TEST(UpdateRandom, RoundsTheTwoMomentsApart) {
  EXPECT_LT(std::abs(mean([](std::int64_t i) {
              const std::uint32_t bits = bits_of(1, i);
              return centred(random16_moment1(bits), 16) * centred(random16_moment2(bits), 16);
            })),
            limit);
  EXPECT_LT(std::abs(mean([](std::int64_t i) {
              const std::uint32_t bits = bits_of(i + 1, 9);
              return centred(random20_moment1(bits), 20) * centred(random20_moment2(bits), 20);
            })),
            limit);
}

TEST(UpdateRandom, DoesNotGoTogetherAtNeighbours) {
  for (const std::int64_t apart : {1, 2, 16, 576, 4096}) {
    for (const int moment : {1, 2}) {
      const auto value = [&](std::int64_t i) {
        const std::uint32_t bits = bits_of(1, i);
        return centred(moment == 1 ? random16_moment1(bits) : random16_moment2(bits), 16);
      };
      EXPECT_LT(std::abs(mean([&](std::int64_t i) { return value(i) * value(i + apart); })),
                4 * limit)
          << apart << " apart, moment " << moment;
    }
  }
}

}  // namespace
}  // namespace strata
