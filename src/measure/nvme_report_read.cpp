// An NvmeReport from JSON that anybody may have written: every key must be there, known, and of its
// type.

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "nvme_report_fields.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using nlohmann::json;

constexpr int nesting_max = 8;             // ours has five levels
constexpr std::size_t results_max = 1024;  // bounds what tables and pictures can grow to

[[noreturn]] void refuse(const std::string& where, const std::string& problem) {
  throw ConfigError(fmt::format("{}: {}", where, problem));
}

json parse_report(const std::string& text, const std::string& path) {
  // The parser takes a NUL byte for the end and would not see what follows.
  if (text.find('\0') != std::string::npos) refuse(path, "a NUL byte in JSON text");
  const auto watch = [&](int depth, json::parse_event_t, const json&) {
    if (depth > nesting_max) refuse(path, fmt::format("nested deeper than {}", nesting_max));
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const json::exception& error) {
    refuse(path, fmt::format("not valid JSON: {}", error.what()));
  }
}

class FieldReader {
 public:
  // `where`: "report.json: results[2]". Both must outlive the reader.
  FieldReader(const json& object, const std::string& where, const char* separator = ".")
      : object_(object), where_(where), separator_(separator) {
    if (!object.is_object()) refuse(where, "is no JSON object");
  }

  template <class T>
  void operator()(const char* key, T& value) {
    known_.insert(key);
    const auto found = object_.find(key);
    if (found == object_.end()) refuse(where_, fmt::format("'{}' is missing", key));
    read(*found, where_ + separator_ + key, value);
  }
  void refuse_unknown_keys() const {
    for (const auto& [key, value] : object_.items())
      if (!known_.contains(key)) refuse(where_, fmt::format("unknown key '{}'", key));
  }

 private:
  static void read(const json& value, const std::string& where, std::string& target) {
    if (!value.is_string()) refuse(where, "is no text");
    target = value.get<std::string>();
  }
  static void read(const json& value, const std::string& where, bool& target) {
    if (!value.is_boolean()) refuse(where, "is neither true nor false");
    target = value.get<bool>();
  }
  static void read(const json& value, const std::string& where, std::uint64_t& target) {
    if (!value.is_number_unsigned()) refuse(where, "is no whole number of 0 or more");
    target = value.get<std::uint64_t>();
  }
  static void read(const json& value, const std::string& where, int& target) {
    std::uint64_t number = 0;
    read(value, where, number);
    if (number > std::numeric_limits<int>::max()) refuse(where, "is too large");
    target = static_cast<int>(number);
  }
  // All that is measured is 0 or more; the parser lets no infinities through.
  static void read(const json& value, const std::string& where, double& target) {
    if (!value.is_number()) refuse(where, "is no number");
    target = value.get<double>();
    if (!(target >= 0)) refuse(where, "is below 0");
  }
  static void read(const json& value, const std::string& where, NvmePattern& target) {
    std::string name;
    read(value, where, name);
    try {
      target = parse_nvme_pattern(name);
    } catch (const ConfigError& error) {
      refuse(where, error.what());
    }
  }
  static void read(const json& value, const std::string& where, Samples& target) {
    FieldReader fields(value, where);
    fields("samples", target.values);
    double ignored = 0;  // They follow from the samples.
    for (const char* summary : {"median", "min", "max", "stdev"}) fields(summary, ignored);
    fields.refuse_unknown_keys();
  }
  template <class T>
  static void read(const json& value, const std::string& where, std::optional<T>& target) {
    target.reset();
    if (!value.is_null()) read(value, where, target.emplace());
  }
  template <class T>
  static void read(const json& value, const std::string& where, std::vector<T>& target) {
    if (!value.is_array()) refuse(where, "is no list");
    target.clear();
    for (const json& item : value) {
      const std::string place = fmt::format("{}[{}]", where, target.size());
      read(item, place, target.emplace_back());
    }
  }
  template <HasNvmeFields T>
  static void read(const json& value, const std::string& where, T& target) {
    FieldReader fields(value, where);
    list_fields(fields, target);
    fields.refuse_unknown_keys();
  }

  const json& object_;
  const std::string& where_;
  const char* separator_;  // between `where` and a key
  std::set<std::string> known_;
};

void check_count(std::size_t count, const char* key, const std::string& path) {
  if (count > results_max)
    refuse(path,
           fmt::format("{} has {} entries; at most {} are accepted", key, count, results_max));
}

// What no single field can tell.
void check_whole(const NvmeReport& report, const std::string& path) {
  check_count(report.drives.size(), "drives", path);
  check_count(report.results.size(), "results", path);
  check_count(report.sweep.size(), "sweep", path);
  check_count(report.sustained.size(), "sustained", path);
  for (const SustainedResult& sustained : report.sustained) {
    if (!(sustained.interval_s > 0)) refuse(path, "interval_s of a sustained run must be above 0");
    if (sustained.knee && *sustained.knee >= sustained.bytes_per_s.size())
      refuse(path, fmt::format("knee_interval {} of a sustained run of {} intervals",
                               *sustained.knee, sustained.bytes_per_s.size()));
  }
}

void check_version(const json& document, const std::string& path) {
  if (!document.is_object() || document.value("format", json()) != nvme_report_format)
    refuse(path, fmt::format("no report of strata bench nvme (format '{}')", nvme_report_format));
  const json version = document.value("schema_version", json());
  if (!version.is_number_integer()) refuse(path, "'schema_version' is missing or no number");
  if (version != NvmeReport::schema_version)
    refuse(path,
           fmt::format("schema_version {}; this strata reads {}. Use the strata that wrote it",
                       version.dump(), NvmeReport::schema_version));
}

}  // namespace

NvmeReport nvme_report_from_json(const std::string& text, const std::string& path) {
  const json document = parse_report(text, path);
  check_version(document, path);
  NvmeReport report;
  FieldReader fields(document, path, ": ");
  std::string format;
  int version = 0;
  fields("format", format);
  fields("schema_version", version);
  list_fields(fields, report);
  fields.refuse_unknown_keys();
  check_whole(report, path);
  return report;
}

}  // namespace strata
