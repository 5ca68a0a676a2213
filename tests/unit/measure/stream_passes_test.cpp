#include "src/measure/stream_passes.hpp"

#include <gtest/gtest.h>

#include <new>
#include <numeric>
#include <vector>

namespace strata {
namespace {

constexpr std::int64_t stream_count = 64, first_streamed = 8, last_streamed = 56;

// Three arrays on cache lines, and what lies outside of [first, last) must stay.
class StreamPassTest : public ::testing::TestWithParam<StreamStores> {
 protected:
  StreamPassTest() {
    std::iota(arrays_.a, arrays_.a + stream_count, 1.0);
    std::iota(arrays_.b, arrays_.b + stream_count, 100.0);
    std::iota(arrays_.c, arrays_.c + stream_count, 1000.0);
  }
  void run(StreamPass pass) {
    run_stream_pass(pass, GetParam(), arrays_, first_streamed, last_streamed);
  }

  template <class F>
  void expect(const double* array, double first, F inside) {
    for (std::int64_t i = 0; i < stream_count; ++i) {
      const double was = first + static_cast<double>(i);
      EXPECT_EQ(array[i],
                i >= first_streamed && i < last_streamed ? inside(static_cast<double>(i)) : was)
          << i;
    }
  }

  alignas(64) double memory_[3 * stream_count];
  StreamArrays arrays_{memory_, memory_ + stream_count, memory_ + 2 * stream_count};
};

TEST_P(StreamPassTest, FillsWithAConstant) {
  run(StreamPass::fill);
  expect(arrays_.a, 1, [](double) { return 3; });
}

TEST_P(StreamPassTest, Copies) {
  run(StreamPass::copy);
  expect(arrays_.c, 1000, [](double i) { return 1 + i; });
}

TEST_P(StreamPassTest, Scales) {
  run(StreamPass::scale);
  expect(arrays_.b, 100, [](double i) { return 3 * (1000 + i); });
}

TEST_P(StreamPassTest, Adds) {
  run(StreamPass::add);
  expect(arrays_.c, 1000, [](double i) { return 101 + 2 * i; });
}

TEST_P(StreamPassTest, AddsAMultiple) {
  run(StreamPass::triad);
  expect(arrays_.a, 1, [](double i) { return 100 + i + 3 * (1000 + i); });
}

TEST_P(StreamPassTest, ChangesInPlace) {
  run(StreamPass::change);
  expect(arrays_.a, 1, [](double i) { return -(1 + i); });
}

TEST_P(StreamPassTest, ReadsWithoutAChange) {
  const std::vector<double> before(memory_, memory_ + 3 * stream_count);
  run(StreamPass::read);
  EXPECT_EQ(std::vector<double>(memory_, memory_ + 3 * stream_count), before);
}

INSTANTIATE_TEST_SUITE_P(Stores, StreamPassTest,
                         ::testing::Values(StreamStores::normal, StreamStores::streamed));

TEST(StreamFacts, NameEveryPassOnce) {
  for (std::size_t i = 0; i < stream_facts.size(); ++i)
    EXPECT_EQ(static_cast<std::size_t>(stream_facts[i].pass), i);
}

}  // namespace
}  // namespace strata
