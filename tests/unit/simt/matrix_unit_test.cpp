// Fragments lie in registers as the PTX ISA says, and multiply as matrices do.

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "kernels/cuda/simt.hpp"
#include "strata/core/philox.hpp"

namespace strata::cuda {
namespace {

constexpr LaunchShape one_matrix_warp{.shared_bytes = 2048};

using Values = std::vector<float>;

Values random_values(std::size_t count, std::uint64_t seed) {
  PhiloxStream random(seed, 0);
  Values values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(to_float(to_bfloat16(static_cast<float>(random.next_normal()))));
  return values;
}

Global<const float> view(const Values& values) {
  return {values.data(), static_cast<std::int64_t>(values.size())};
}

void expect_product(const Values& a, const Values& b, const Values& c) {
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      double expected = 0;
      for (std::size_t k = 0; k < 16; ++k)
        expected += static_cast<double>(a[row * 16 + k]) * static_cast<double>(b[k * 8 + column]);
      EXPECT_NEAR(static_cast<double>(c[row * 8 + column]), 2 * expected, 1e-5);
    }
  }
}

// The ISA's words, element by element: "row = groupID for ai where 0 <= i < 2 || 4 <= i < 6, else
// groupID + 8; col = (threadID_in_group * 2) + (i & 0x1), + 8 for ai where i >= 4"; for bi "row =
// (threadID_in_group * 2) + (i & 0x1), + 8 where i >= 2, col = groupID"; for ci "row = groupID,
// + 8 where i >= 2; col = (threadID_in_group * 2) + (i & 0x1)".
STRATA_KERNEL(32)
multiply_by_elements(Global<const float> a, Global<const float> b, Global<float> c) {
  const int group = lane_index() >> 2, in_group = lane_index() % 4;
  Group<float, 8> as{}, bs{};
  for (int i = 0; i < 8; ++i) {
    const int row = i < 2 || (4 <= i && i < 6) ? group : group + 8;
    as[i] = a.load(row * 16 + in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0));
  }
  for (int i = 0; i < 4; ++i)
    bs[i] = b.load((in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0)) * 8 + group);
  Fragment4 fragment_a{};
  Fragment2 fragment_b{};
  for (int i = 0; i < 4; ++i) fragment_a[i] = pack2(as[2 * i], as[2 * i + 1]);
  for (int i = 0; i < 2; ++i) fragment_b[i] = pack2(bs[2 * i], bs[2 * i + 1]);
  Sums4 sums{};
  multiply_add(sums, fragment_a, fragment_b);
  multiply_add(sums, fragment_a, fragment_b);
  for (int i = 0; i < 4; ++i)
    c.store((group + (i >= 2 ? 8 : 0)) * 8 + in_group * 2 + (i & 1), sums[i]);
}

TEST(MatrixUnit, MultipliesFragmentsInTheLayoutOfTheIsa) {
  const Values a = random_values(256, 1), b = random_values(128, 2);
  Values c(128);
  simt::Emulator().launch("multiply", multiply_by_elements, one_matrix_warp, view(a), view(b),
                          Global<float>(c.data(), 128));
  expect_product(a, b, c);
}

STRATA_DEVICE void fill(const Shared<bfloat16>& to, const Global<const float>& from, int count) {
  for (int i = thread_index(); i < count; i += 32) to.store(i, to_bfloat16(from.load(i)));
  sync_threads();
}

enum class Storage : std::uint8_t { k_rows, column_rows };  // b's rows in shared memory

// a from rows of k; b from rows of k, transposed while loaded, or from rows of columns. b is loaded
// by lanes that point at the same matrices twice.
STRATA_KERNEL(32)
multiply_from_shared(Global<const float> a, Global<const float> b, Global<float> c,
                     Storage storage) {
  const Shared<bfloat16> a_mk(0, 256), b_shared(512, 128);
  fill(a_mk, a, 256);
  fill(b_shared, b, 128);
  const int lane = lane_index();
  const Fragment4 fragment_a = load_matrices(a_mk, lane % 16 * 16 + lane / 16 * 8);
  const Fragment4 both = storage == Storage::k_rows
                             ? load_matrices_transposed(b_shared, lane % 16 * 8)
                             : load_matrices(b_shared, lane % 8 * 16 + lane / 8 % 2 * 8);
  Sums4 sums{};
  multiply_add(sums, fragment_a, {{both[0], both[1]}});
  multiply_add(sums, fragment_a, {{both[2], both[3]}});
  const int group = lane / 4, pair = lane % 4;
  for (int i = 0; i < 4; ++i) c.store((group + i / 2 * 8) * 8 + 2 * pair + i % 2, sums[i]);
}

TEST(MatrixUnit, LoadsFragmentsFromSharedMemoryPlainAndTransposed) {
  const Values a = random_values(256, 3), b = random_values(128, 4);
  Values b_by_columns(128);
  for (std::size_t k = 0; k < 16; ++k)
    for (std::size_t column = 0; column < 8; ++column)
      b_by_columns[column * 16 + k] = b[k * 8 + column];
  for (Storage storage : {Storage::k_rows, Storage::column_rows}) {
    Values c(128);
    simt::Emulator().launch("multiply", multiply_from_shared, one_matrix_warp, view(a),
                            view(storage == Storage::k_rows ? b : b_by_columns),
                            Global<float>(c.data(), 128), storage);
    expect_product(a, b, c);
  }
}

STRATA_KERNEL(32) load_unaligned() {
  const Shared<bfloat16> shared(0, 256);
  for (int i = thread_index(); i < 256; i += 32) shared.store(i, {});
  sync_threads();
  load_matrices(shared, lane_index() * 4);
}

TEST(MatrixUnit, WantsRowsOnSixteenBytes) {
  try {
    simt::Emulator().launch("load", load_unaligned, one_matrix_warp);
    FAIL() << "no fault";
  } catch (const simt::Fault& fault) {
    EXPECT_EQ(fault.kind(), simt::FaultKind::misaligned);
  }
}

}  // namespace
}  // namespace strata::cuda
