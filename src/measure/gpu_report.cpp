// What follows from a GpuReport's samples, and the report as JSON.

#include "strata/measure/gpu_report.hpp"

#include <algorithm>

#include "gpu_report_fields.hpp"
#include "report_writer.hpp"

namespace strata {
namespace {

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
  fields("format", std::string("strata-gpu-bench"));
  fields("schema_version", GpuReport::schema_version);
  list_fields(fields, report);
  return fields.text();
}

}  // namespace strata
