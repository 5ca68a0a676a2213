#pragma once
// The JSON of a GpuReport: see report_fields.hpp. What others read are the rates beside the
// samples; `m`, `n`, `k` are tokens, outputs and inputs.

#include <type_traits>

#include "report_fields.hpp"
#include "strata/measure/gpu_report.hpp"

namespace strata {

template <class Fields, class T>
void list_device_fields(Fields& fields, T& device) {
  fields("name", device.name);
  fields("ordinal", device.ordinal);
  fields("compute", device.compute);
  fields("pci_address", device.pci_address);
  fields("memory_bytes", device.memory_bytes);
  fields("usable_bytes", device.usable_bytes);
  fields("sms", device.sms);
  fields("copy_engines", device.copy_engines);
  fields("driver_version", device.driver_version);
  fields("runtime_version", device.runtime_version);
}

template <class Fields, class T>
void list_link_fields(Fields& fields, T& links) {
  fields.derived("h2d_bytes_per_s", links.h2d.median());
  fields.derived("d2h_bytes_per_s", links.d2h.median());
  fields.derived("both_bytes_per_s", links.both.median());
  fields("copy_bytes", links.bytes);
  fields("h2d", links.h2d);
  fields("d2h", links.d2h);
  fields("both", links.both);
}

template <class Fields, class T>
void list_product_fields(Fields& fields, T& product) {
  fields("pass", product.pass);
  fields("dtype", product.dtype);
  fields("m", product.m);
  fields("n", product.n);
  fields("k", product.k);
  fields("flops", product.flops);
  fields.derived("flops_per_s", product.flops_per_s());
  fields("seconds", product.seconds);
}

template <class Fields, class T>
void list_attention_fields(Fields& fields, T& attention) {
  fields("dtype", attention.dtype);
  fields("tokens", attention.tokens);
  fields("heads", attention.heads);
  fields("kv_heads", attention.kv_heads);
  fields("head_dim", attention.head_dim);
  fields("forward_flops", attention.forward_flops);
  fields("backward_flops", attention.backward_flops);
  fields.derived("forward_flops_per_s", attention.forward_flops_per_s());
  fields.derived("backward_flops_per_s", attention.backward_flops_per_s());
  fields("forward_seconds", attention.forward_seconds);
  fields("backward_seconds", attention.backward_seconds);
}

template <class Fields, class T>
void list_update_fields(Fields& fields, T& update) {
  fields("layout", update.layout);
  fields("parameters", update.parameters);
  fields("bytes", update.bytes);
  fields.derived("params_per_s", update.params_per_s());
  fields.derived("bytes_per_s", update.bytes_per_s());
  fields("seconds", update.seconds);
}

template <class Fields, class T>
void list_pass_fields(Fields& fields, T& pass) {
  fields("pass", pass.pass);
  fields("rows", pass.rows);
  fields("width", pass.width);
  fields("bytes", pass.bytes);
  fields.derived("bytes_per_s", pass.bytes_per_s());
  fields("seconds", pass.seconds);
}

template <class Fields, class T>
void list_gpu_fields(Fields& fields, T& report) {
  fields("strata_version", report.strata_version);
  fields("started_at", report.started_at);
  fields("kernel", report.kernel);
  fields("cpu", report.cpu);
  fields("kernels", report.kernels);
  fields("repeats", report.repeats);
  fields("sample_seconds", report.sample_seconds);
  fields("device", report.device);
  fields("links", report.links);
  fields.derived("memory_bytes_per_s", report.memory_bytes_per_s.median());
  fields("memory_copy_bytes", report.copy_bytes);
  fields("memory_copies", report.memory_bytes_per_s);
  fields("matmul", report.matmul);
  fields.derived("peak_matmul_flops_per_s", report.peak_matmul_flops_per_s());
  fields("attention", report.attention);
  fields("adam", report.adam);
  fields("passes", report.passes);
  fields.derived("launch_seconds", report.launch_seconds.median());
  fields("launches", report.launch_seconds);
  fields.derived("matmul_launch_seconds", report.matmul_launch_seconds.median());
  fields("matmul_launches", report.matmul_launch_seconds);
  fields("notes", report.notes);
}

template <class T>
inline constexpr bool is_gpu_report_part =
    std::is_same_v<T, MeasuredDevice> || std::is_same_v<T, MeasuredLinks> ||
    std::is_same_v<T, MeasuredProduct> || std::is_same_v<T, MeasuredAttention> ||
    std::is_same_v<T, MeasuredUpdate> || std::is_same_v<T, MeasuredPass> ||
    std::is_same_v<T, GpuReport>;

template <class Fields, class T>
requires is_gpu_report_part<std::remove_const_t<T>>
void list_fields(Fields& fields, T& value) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, MeasuredDevice>) list_device_fields(fields, value);
  if constexpr (std::is_same_v<Plain, MeasuredLinks>) list_link_fields(fields, value);
  if constexpr (std::is_same_v<Plain, MeasuredProduct>) list_product_fields(fields, value);
  if constexpr (std::is_same_v<Plain, MeasuredAttention>) list_attention_fields(fields, value);
  if constexpr (std::is_same_v<Plain, MeasuredUpdate>) list_update_fields(fields, value);
  if constexpr (std::is_same_v<Plain, MeasuredPass>) list_pass_fields(fields, value);
  if constexpr (std::is_same_v<Plain, GpuReport>) list_gpu_fields(fields, value);
}

template <class T>
requires is_gpu_report_part<T>
inline constexpr bool has_report_fields<T> = true;

}  // namespace strata
