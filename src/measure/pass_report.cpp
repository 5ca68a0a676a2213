// What follows from a PassResult's samples, and a PassReport as JSON and back.

#include "strata/measure/pass_report.hpp"

#include <algorithm>
#include <array>

#include "pass_report_fields.hpp"
#include "report_reader.hpp"
#include "report_writer.hpp"

namespace strata {
namespace {

constexpr std::array kinds = {
    ReportKind{"strata-memory-bench", "bench memory", PassReport::schema_version},
    ReportKind{"strata-adam-bench", "bench adam", PassReport::schema_version}};

const ReportKind& kind_of(PassBench bench) { return kinds[static_cast<std::size_t>(bench)]; }

Samples rates(const Samples& seconds, double amount) {
  Samples result;
  for (const double s : seconds.values) result.values.push_back(s > 0 ? amount / s : 0);
  return result;
}

PassBench bench_of(const nlohmann::json& document, const std::string& path) {
  const auto format = document.is_object() ? document.value("format", nlohmann::json()) : nullptr;
  if (format == kind_of(PassBench::memory).format) return PassBench::memory;
  check_report_kind(document, kind_of(PassBench::adam), path);
  return PassBench::adam;
}

void check_results(const PassReport& report, const std::string& path) {
  check_report_count(report.results.size(), "results", path);
  for (const PassResult& result : report.results) {
    const std::size_t rooflines = result.roofline_seconds.values.size();
    if (rooflines != 0 && rooflines != result.seconds.values.size())
      refuse_report(path, "roofline_seconds of " + result.pass + " has samples of another number");
  }
}

}  // namespace

std::string_view pass_bench_name(PassBench bench) {
  return bench == PassBench::memory ? "memory" : "adam";
}

Samples PassResult::elements_per_s() const { return rates(seconds, static_cast<double>(count)); }

Samples PassResult::bytes_per_s() const {
  return rates(seconds, static_cast<double>(count) * bytes_per_element);
}

Samples PassResult::roofline_bytes_per_s() const {
  return rates(roofline_seconds, static_cast<double>(count) * bytes_per_element);
}

Samples PassResult::of_roofline() const {
  Samples result;
  const std::size_t pairs = std::min(seconds.values.size(), roofline_seconds.values.size());
  for (std::size_t i = 0; i < pairs; ++i)
    if (seconds.values[i] > 0)
      result.values.push_back(roofline_seconds.values[i] / seconds.values[i]);
  return result;
}

std::string to_json(const PassReport& report) {
  ReportWriter fields;
  fields("format", std::string(kind_of(report.bench).format));
  fields("schema_version", PassReport::schema_version);
  list_fields(fields, report);
  return fields.text();
}

PassReport pass_report_from_json(const std::string& text, const std::string& path) {
  const nlohmann::json document = parse_report(text, path);
  const PassBench bench = bench_of(document, path);
  check_report_kind(document, kind_of(bench), path);
  auto report = read_report<PassReport>(document, path);
  report.bench = bench;
  check_results(report, path);
  return report;
}

bool is_pass_report(const std::string& text) {
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object()) return false;
  const auto format = document.value("format", nlohmann::json());
  return std::ranges::any_of(kinds, [&](const ReportKind& kind) { return format == kind.format; });
}

}  // namespace strata
