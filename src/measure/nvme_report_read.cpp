// An NvmeReport from JSON that anybody may have written.

#include <fmt/format.h>

#include "nvme_report_fields.hpp"
#include "report_reader.hpp"

namespace strata {
namespace {

constexpr ReportKind nvme_report_kind{nvme_report_format, "bench nvme", NvmeReport::schema_version};

// What no single field can tell.
void check_whole(const NvmeReport& report, const std::string& path) {
  check_report_count(report.drives.size(), "drives", path);
  check_report_count(report.results.size(), "results", path);
  check_report_count(report.sweep.size(), "sweep", path);
  check_report_count(report.sustained.size(), "sustained", path);
  for (const SustainedResult& sustained : report.sustained) {
    if (!(sustained.interval_s > 0))
      refuse_report(path, "interval_s of a sustained run must be above 0");
    if (sustained.knee && *sustained.knee >= sustained.bytes_per_s.size())
      refuse_report(path, fmt::format("knee_interval {} of a sustained run of {} intervals",
                                      *sustained.knee, sustained.bytes_per_s.size()));
  }
}

}  // namespace

NvmeReport nvme_report_from_json(const std::string& text, const std::string& path) {
  const nlohmann::json document = parse_report(text, path);
  check_report_kind(document, nvme_report_kind, path);
  const auto report = read_report<NvmeReport>(document, path);
  check_whole(report, path);
  return report;
}

}  // namespace strata
