#include "report_reader.hpp"

namespace strata {
namespace {

using nlohmann::json;

constexpr int nesting_max = 8;  // ours has five levels
constexpr std::size_t results_max = 1024;

}  // namespace

void refuse_report(const std::string& where, const std::string& problem) {
  throw ConfigError(fmt::format("{}: {}", where, problem));
}

json parse_report(const std::string& text, const std::string& path) {
  // The parser takes a NUL byte for the end and would not see what follows.
  if (text.find('\0') != std::string::npos) refuse_report(path, "a NUL byte in JSON text");
  const auto watch = [&](int depth, json::parse_event_t, const json&) {
    if (depth > nesting_max) refuse_report(path, fmt::format("nested deeper than {}", nesting_max));
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const json::exception& error) {
    refuse_report(path, fmt::format("not valid JSON: {}", error.what()));
  }
}

void check_report_kind(const json& document, const ReportKind& kind, const std::string& path) {
  if (!document.is_object() || document.value("format", json()) != kind.format)
    refuse_report(path,
                  fmt::format("no report of strata {} (format '{}')", kind.command, kind.format));
  const json version = document.value("schema_version", json());
  if (!version.is_number_integer()) refuse_report(path, "'schema_version' is missing or no number");
  if (version != kind.schema_version)
    refuse_report(path,
                  fmt::format("schema_version {}; this strata reads {}. Use the strata that wrote "
                              "it",
                              version.dump(), kind.schema_version));
}

void check_report_count(std::size_t count, const char* key, const std::string& path) {
  if (count > results_max)
    refuse_report(
        path, fmt::format("{} has {} entries; at most {} are accepted", key, count, results_max));
}

}  // namespace strata
