// What follows from a GpuReport's samples, and the report as JSON and back.

#include "strata/measure/gpu_report.hpp"

#include <algorithm>

#include "gpu_report_fields.hpp"
#include "report_reader.hpp"
#include "report_writer.hpp"

namespace strata {
namespace {

constexpr ReportKind gpu_report_kind{"strata-gpu-bench", "bench gpu", GpuReport::schema_version};

bool is_reference(const MeasuredProduct& product) {
  return product.pass == "forward" && product.dtype == "bf16" && product.m == product.n &&
         product.n == product.k;
}

}  // namespace

double GpuReport::peak_matmul_flops_per_s() const {
  double best = 0;
  for (const MeasuredProduct& product : matmul)
    if (is_reference(product)) best = std::max(best, product.flops_per_s());
  return best;
}

std::string to_json(const GpuReport& report) {
  ReportWriter fields;
  fields("format", std::string(gpu_report_kind.format));
  fields("schema_version", GpuReport::schema_version);
  list_fields(fields, report);
  return fields.text();
}

GpuReport gpu_report_from_json(const std::string& text, const std::string& path) {
  const nlohmann::json document = parse_report(text, path);
  check_report_kind(document, gpu_report_kind, path);
  auto report = read_report<GpuReport>(document, path);
  check_report_count(report.matmul.size(), "matmul", path);
  check_report_count(report.attention.size(), "attention", path);
  check_report_count(report.adam.size(), "adam", path);
  check_report_count(report.passes.size(), "passes", path);
  return report;
}

bool is_gpu_report(const std::string& text) {
  const auto document = nlohmann::json::parse(text, nullptr, false);
  return document.is_object() &&
         document.value("format", nlohmann::json()) == gpu_report_kind.format;
}

}  // namespace strata
