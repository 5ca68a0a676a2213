#pragma once
// The JSON of a PassReport: see report_fields.hpp. Its bench is told by its format.

#include "report_fields.hpp"
#include "strata/measure/pass_report.hpp"

namespace strata {

template <class Fields, class T>
requires std::is_same_v<std::remove_const_t<T>, PassResult>
void list_fields(Fields& fields, T& result) {
  fields("pass", result.pass);
  fields("num_threads", result.threads);
  fields("num_elements", result.count);
  fields("bytes_per_element", result.bytes_per_element);
  fields("allocate_bytes_per_element", result.allocate_bytes_per_element);
  fields("seconds", result.seconds);
  fields("roofline_seconds", result.roofline_seconds);
  fields("ping_ns", result.ping_ns);
  fields.derived("elements_per_s", result.elements_per_s());
  fields.derived("bytes_per_s", result.bytes_per_s());
  fields.derived("of_roofline", result.of_roofline());
}

template <class Fields, class T>
requires std::is_same_v<std::remove_const_t<T>, PassReport>
void list_fields(Fields& fields, T& report) {
  fields("strata_version", report.strata_version);
  fields("started_at", report.started_at);
  fields("kernel", report.kernel);
  fields("cpu", report.cpu);
  fields("num_usable_cores", report.usable_cores);
  fields("ping_cores", report.ping_cores);
  fields("load_before", report.load_before);
  fields("load_after", report.load_after);
  fields("page_bytes", report.page_bytes);
  fields("repeats", report.repeats);
  fields("results", report.results);
  fields("notes", report.notes);
}

template <>
inline constexpr bool has_report_fields<PassResult> = true;
template <>
inline constexpr bool has_report_fields<PassReport> = true;

}  // namespace strata
