#pragma once
// The JSON of an NvmeReport, declared once: each struct's keys with the members they hold. Writing
// and reading walk the same list, so what is written can be read.

#include <string>
#include <type_traits>

#include "report_fields.hpp"
#include "strata/measure/nvme_report.hpp"

namespace strata {

template <class Fields, class T>
void list_drive_fields(Fields& fields, T& drive) {
  fields("path", drive.path);
  fields("mount_point", drive.mount_point);
  fields("file_system", drive.file_system);
  fields("mount_options", drive.mount_options);
  fields("total_bytes", drive.total_bytes);
  fields("free_bytes", drive.free_bytes);
  fields("is_in_memory", drive.in_memory);
  fields("device", drive.device);
  fields("disk", drive.disk);
  fields("model", drive.model);
  fields("is_rotational", drive.rotational);
  fields("logical_sector_bytes", drive.logical_sector_bytes);
  fields("physical_sector_bytes", drive.physical_sector_bytes);
  fields("num_requests_max", drive.requests_max);
  fields("request_bytes_max", drive.request_bytes_max);
  fields("scheduler", drive.scheduler);
  fields("write_cache", drive.write_cache);
  fields("numa_node", drive.numa_node);
  fields("pcie_link", drive.pcie_link);
  fields("direct_alignment_bytes", drive.direct_alignment);
}

template <class Fields, class T>
void list_result_fields(Fields& fields, T& result) {
  fields("pattern", result.pattern);
  fields("target", result.target);
  fields("block_bytes", result.block_bytes);
  fields("depth", result.depth);
  fields("bytes_per_s", result.bytes_per_s);
  fields("cpu_seconds_per_gb", result.cpu_seconds_per_gb);
  fields("latency_p50_us", result.latency.p50_us);
  fields("latency_p99_us", result.latency.p99_us);
  fields("latency_max_us", result.latency.max_us);
  fields.added("new_file_bytes_per_s", result.new_file_bytes_per_s);
  fields("fio_bytes_per_s", result.fio_bytes_per_s);
  fields("fio_cpu_seconds_per_gb", result.fio_cpu_seconds_per_gb);
  fields("fio_job", result.fio_job);
}

template <class Fields, class T>
void list_sustained_fields(Fields& fields, T& sustained) {
  fields("pattern", sustained.pattern);
  fields("target", sustained.target);
  fields("interval_s", sustained.interval_s);
  fields("bytes_per_s", sustained.bytes_per_s);
  fields("knee_interval", sustained.knee);
  fields("before_knee_bytes_per_s", sustained.before_knee_bytes_per_s);
  fields("after_knee_bytes_per_s", sustained.after_knee_bytes_per_s);
}

template <class Fields, class T>
void list_report_fields(Fields& fields, T& report) {
  fields("strata_version", report.strata_version);
  fields("started_at", report.started_at);
  fields("kernel", report.kernel);
  fields("cpu", report.cpu);
  fields("io_engine", report.engine);
  fields("buffer_page_bytes", report.buffer_page_bytes);
  fields("file_bytes", report.file_bytes);
  fields("repeats", report.repeats);
  fields("drives", report.drives);
  fields("results", report.results);
  fields("sweep", report.sweep);
  fields("sustained", report.sustained);
  fields("sync_seconds", report.sync_seconds);
  fields("verified_bytes", report.verified_bytes);
  fields("best_block_bytes", report.best_block_bytes);
  fields("best_depth", report.best_depth);
  fields("notes", report.notes);
}

template <class Fields, class T>
void list_fields(Fields& fields, T& value) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, DriveFacts>) list_drive_fields(fields, value);
  if constexpr (std::is_same_v<Plain, NvmeResult>) list_result_fields(fields, value);
  if constexpr (std::is_same_v<Plain, SustainedResult>) list_sustained_fields(fields, value);
  if constexpr (std::is_same_v<Plain, NvmeReport>) list_report_fields(fields, value);
}

template <>
inline constexpr bool has_report_fields<DriveFacts> = true;
template <>
inline constexpr bool has_report_fields<NvmeResult> = true;
template <>
inline constexpr bool has_report_fields<SustainedResult> = true;
template <>
inline constexpr bool has_report_fields<NvmeReport> = true;
template <>
inline constexpr bool is_report_choice<NvmePattern> = true;

inline std::string_view choice_name(NvmePattern pattern) { return nvme_pattern_name(pattern); }
inline void parse_choice(const std::string& text, NvmePattern& pattern) {
  pattern = parse_nvme_pattern(text);
}

inline constexpr const char* nvme_report_format = "strata-nvme-bench";

}  // namespace strata
