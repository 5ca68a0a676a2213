#include "kernels/cpu/matmul.hpp"

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include "kernels/cpu/compiled_product.hpp"
#include "kernels/cpu/scratch_buffer.hpp"
#include "kernels/cpu/widen.hpp"

namespace strata::cpu {
namespace {

// One thread's compiled products and scratch.
class Products {
 public:
  // oneDNN asks OpenMP how many threads this thread may use; the setting belongs to the calling
  // thread alone.
  Products() : stream_(cpu_engine()) { omp_set_num_threads(1); }

  void run(const Matmul& product) {
    CompiledProduct& compiled = find(ProductKey(product));
    compiled.run(product, scratch_.reserve(compiled.scratch_bytes()), stream_);
  }

 private:
  // A run uses some dozens of shapes; the bound is there for a process that never ends, such as a
  // test's.
  static constexpr std::size_t max_products = 2048;

  CompiledProduct& find(const ProductKey& key) {
    const auto found = products_.find(key);
    if (found != products_.end()) return found->second;
    if (products_.size() == max_products) products_.clear();
    return products_.try_emplace(key, key).first->second;
  }

  dnnl::stream stream_;
  std::unordered_map<ProductKey, CompiledProduct, ProductKeyHash> products_;
  ScratchBuffer scratch_;
};

void multiply(const Matmul& product) {
  thread_local Products products;
  products.run(product);
}

bool multiplies_bf16() {
  static const bool yes = [] {
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
    return (isa & wanted) == wanted;
  }();
  return yes;
}

// Rows [row, row + rows) x columns [column, column + columns).
struct Part {
  std::int64_t row, column, rows, columns;
};

const bfloat16* at(const Matrix& matrix, const Part& part) {
  return static_cast<const bfloat16*>(matrix.data) + part.row * matrix.row_stride +
         part.column * matrix.column_stride;
}

// The part in fp32, packed in the order in which it is stored.
Matrix widened(const Matrix& matrix, const Part& part, ScratchBuffer& buffer) {
  float* target = buffer.floats(static_cast<std::size_t>(part.rows * part.columns));
  if (matrix.column_stride == 1) {
    widen({at(matrix, part), matrix.row_stride}, {target, part.columns}, part.rows, part.columns);
    return {target, part.columns, 1, DType::f32};
  }
  widen({at(matrix, part), matrix.column_stride}, {target, part.rows}, part.columns, part.rows);
  return {target, 1, part.rows, DType::f32};
}

struct WideningBuffers {
  ScratchBuffer a, b, c, bias;
};

// The fp32 result to add to: c itself, or a copy that is rounded into c at the end.
float* wide_result(const Matmul& product, WideningBuffers& buffers) {
  if (product.c_dtype == DType::f32) return static_cast<float*>(product.c_mn);
  float* wide = buffers.c.floats(static_cast<std::size_t>(product.m * product.n));
  if (product.accumulate == Accumulate::yes) {
    widen({static_cast<const bfloat16*>(product.c_mn), product.c_row_stride}, {wide, product.n},
          product.m, product.n);
  }
  return wide;
}

const float* wide_bias(const Matmul& product, WideningBuffers& buffers) {
  if (product.bias_n == nullptr) return nullptr;
  float* wide = buffers.bias.floats(static_cast<std::size_t>(product.n));
  widen({static_cast<const bfloat16*>(product.bias_n), product.n}, {wide, product.n}, 1, product.n);
  return wide;
}

// Bounds the fp32 copies whatever the summed dimension.
constexpr std::int64_t widened_depth = 1024;

}  // namespace

void matmul(const Matmul& product) {
  if (product.m == 0 || product.n == 0) return;
  if (product.a_mk.dtype == DType::f32 || multiplies_bf16()) {
    multiply(product);
  } else {
    matmul_widened(product);
  }
}

void matmul_widened(const Matmul& product) {
  ensure(product.a_mk.dtype == DType::bf16);
  thread_local WideningBuffers buffers;
  Matmul wide = product;
  wide.c_mn = wide_result(product, buffers);
  wide.c_row_stride = product.c_dtype == DType::f32 ? product.c_row_stride : product.n;
  wide.c_dtype = DType::f32;
  wide.bias_n = wide_bias(product, buffers);
  for (std::int64_t start = 0; start < product.k; start += widened_depth) {
    wide.k = std::min(widened_depth, product.k - start);
    wide.a_mk = widened(product.a_mk, {0, start, product.m, wide.k}, buffers.a);
    wide.b_kn = widened(product.b_kn, {start, 0, wide.k, product.n}, buffers.b);
    multiply(wide);
    wide.accumulate = Accumulate::yes;
    wide.bias_n = nullptr;
  }
  if (product.c_dtype == DType::f32) return;
  narrow({static_cast<const float*>(wide.c_mn), product.n},
         {static_cast<bfloat16*>(product.c_mn), product.c_row_stride}, product.m, product.n);
}

}  // namespace strata::cpu
