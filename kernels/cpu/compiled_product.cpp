#include "kernels/cpu/compiled_product.hpp"

#include <fmt/format.h>

#include <mutex>

#include "strata/core/error.hpp"

namespace strata::cpu {
namespace {

using dnnl::memory;

memory::data_type data_type(DType dtype) {
  ensure(dtype == DType::f32 || dtype == DType::bf16);
  return dtype == DType::f32 ? memory::data_type::f32 : memory::data_type::bf16;
}

struct Descriptions {
  explicit Descriptions(const ProductKey& key)
      : a({key.m, key.k}, data_type(key.operand_dtype), {key.a_strides[0], key.a_strides[1]}),
        b({key.k, key.n}, data_type(key.operand_dtype), {key.b_strides[0], key.b_strides[1]}),
        c({key.m, key.n}, data_type(key.c_dtype), {key.c_row_stride, 1}),
        bias({1, key.n}, data_type(key.operand_dtype), {key.n, 1}) {}
  memory::desc a, b, c, bias;
};

dnnl::primitive_attr attributes(const ProductKey& key) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (key.accumulate == Accumulate::yes) {
    dnnl::post_ops post;
    post.append_sum(1.0f);
    attributes.set_post_ops(post);
  }
  return attributes;
}

dnnl::matmul::primitive_desc describe(const ProductKey& key, const Descriptions& of) {
  const auto operation = key.has_bias ? dnnl::matmul::desc(of.a, of.b, of.bias, of.c)
                                      : dnnl::matmul::desc(of.a, of.b, of.c);
  try {
    return {operation, attributes(key), cpu_engine()};
  } catch (const dnnl::error& error) {
    throw Error(fmt::format(
        "oneDNN has no product of {} x {} x {} ({} to {}) on this processor: {}", key.m, key.n,
        key.k, dtype_name(key.operand_dtype), dtype_name(key.c_dtype), error.what()));
  }
}

// Threads compile on first meeting a shape, a few hundred times in a run. One at a time: oneDNN
// guards its own tables, but ThreadSanitizer cannot see it do so in a library it did not build.
std::mutex& compiling() {
  static std::mutex mutex;
  return mutex;
}

memory unbound(const memory::desc& description) { return {description, cpu_engine(), nullptr}; }

}  // namespace

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

ProductKey::ProductKey(const Matmul& product)
    : m(product.m),
      n(product.n),
      k(product.k),
      a_strides{product.a_mk.row_stride, product.a_mk.column_stride},
      b_strides{product.b_kn.row_stride, product.b_kn.column_stride},
      c_row_stride(product.c_row_stride),
      operand_dtype(product.a_mk.dtype),
      c_dtype(product.c_dtype),
      has_bias(product.bias_n != nullptr),
      accumulate(product.accumulate) {
  ensure(product.a_mk.dtype == product.b_kn.dtype);
}

std::size_t ProductKeyHash::operator()(const ProductKey& key) const {
  std::uint64_t hash = 0;
  const auto mix = [&](std::int64_t value) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  for (std::int64_t size : {key.m, key.n, key.k, key.a_strides[0], key.a_strides[1]}) mix(size);
  for (std::int64_t size : {key.b_strides[0], key.b_strides[1], key.c_row_stride}) mix(size);
  mix(static_cast<std::int64_t>(key.operand_dtype) * 64 +
      static_cast<std::int64_t>(key.c_dtype) * 4 + (key.has_bias ? 2 : 0) +
      static_cast<std::int64_t>(key.accumulate));
  return hash;
}

CompiledProduct::CompiledProduct(const ProductKey& key) {
  const std::lock_guard lock(compiling());
  const Descriptions of(key);
  const auto description = describe(key, of);
  primitive_ = dnnl::matmul(description);
  a_ = unbound(of.a);
  b_ = unbound(of.b);
  c_ = unbound(of.c);
  if (key.has_bias) bias_ = unbound(of.bias);
  scratch_ = unbound(description.scratchpad_desc());
  scratch_bytes_ = description.scratchpad_desc().get_size();
}

void CompiledProduct::run(const Matmul& product, std::byte* scratch, const dnnl::stream& stream) {
  a_.set_data_handle(const_cast<void*>(product.a_mk.data));
  b_.set_data_handle(const_cast<void*>(product.b_kn.data));
  c_.set_data_handle(product.c_mn);
  scratch_.set_data_handle(scratch);
  std::array<dnnl_exec_arg_t, 5> args = {{{DNNL_ARG_SRC, a_.get()},
                                          {DNNL_ARG_WEIGHTS, b_.get()},
                                          {DNNL_ARG_DST, c_.get()},
                                          {DNNL_ARG_SCRATCHPAD, scratch_.get()},
                                          {DNNL_ARG_BIAS, nullptr}}};
  int num_args = 4;
  if (product.bias_n != nullptr) {
    bias_.set_data_handle(const_cast<void*>(product.bias_n));
    args[static_cast<std::size_t>(num_args++)].memory = bias_.get();
  }
  // The C call: the C++ one copies its arguments to the heap.
  ensure(dnnl_primitive_execute(primitive_.get(), stream.get(), num_args, args.data()) ==
         dnnl_success);
}

}  // namespace strata::cpu
