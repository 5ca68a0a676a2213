// An NvmeReport as JSON.

#include "nvme_report_fields.hpp"
#include "report_writer.hpp"

namespace strata {

std::string to_json(const NvmeReport& report) {
  ReportWriter fields;
  fields("format", std::string(nvme_report_format));
  fields("schema_version", NvmeReport::schema_version);
  list_fields(fields, report);
  return fields.text();
}

}  // namespace strata
