#pragma once
// Reads the structs of a report from JSON that anybody may have written: every key must be there,
// known, and of its type. Thread contract: any thread.

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "report_fields.hpp"
#include "strata/core/error.hpp"
#include "strata/measure/samples.hpp"

namespace strata {

// Throws ConfigError.
[[noreturn]] void refuse_report(const std::string& where, const std::string& problem);
// Throws ConfigError unless `text` is JSON, and not too deep.
nlohmann::json parse_report(const std::string& text, const std::string& path);

// What a kind of report begins with.
struct ReportKind {
  const char* format;   // the value of its key "format"
  const char* command;  // that writes it
  int schema_version;
};
// Throws ConfigError unless the document is of this kind and version.
void check_report_kind(const nlohmann::json& document, const ReportKind& kind,
                       const std::string& path);
// Bounds what tables and pictures can grow to. Throws ConfigError.
void check_report_count(std::size_t count, const char* key, const std::string& path);

class ReportReader {
 public:
  // `where`: "report.json: results[2]". Both must outlive the reader.
  ReportReader(const nlohmann::json& object, const std::string& where, const char* separator = ".")
      : object_(object), where_(where), separator_(separator) {
    if (!object.is_object()) refuse_report(where, "is no JSON object");
  }

  template <class T>
  void operator()(const char* key, T& value) {
    known_.insert(key);
    const auto found = object_.find(key);
    if (found == object_.end()) refuse_report(where_, fmt::format("'{}' is missing", key));
    read(*found, where_ + separator_ + key, value);
  }
  // One that older reports of the same version lack.
  template <class T>
  void added(const char* key, std::optional<T>& value) {
    if (object_.contains(key)) return (*this)(key, value);
    known_.insert(key);
    value.reset();
  }
  // Follows from other fields.
  template <class T>
  void derived(const char* key, const T&) {
    T ignored{};
    (*this)(key, ignored);
  }
  void refuse_unknown_keys() const {
    for (const auto& [key, value] : object_.items())
      if (!known_.contains(key)) refuse_report(where_, fmt::format("unknown key '{}'", key));
  }

 private:
  static void read(const nlohmann::json& value, const std::string& where, std::string& target) {
    if (!value.is_string()) refuse_report(where, "is no text");
    target = value.get<std::string>();
  }
  static void read(const nlohmann::json& value, const std::string& where, bool& target) {
    if (!value.is_boolean()) refuse_report(where, "is neither true nor false");
    target = value.get<bool>();
  }
  static void read(const nlohmann::json& value, const std::string& where, std::uint64_t& target) {
    if (!value.is_number_unsigned()) refuse_report(where, "is no whole number of 0 or more");
    target = value.get<std::uint64_t>();
  }
  static void read(const nlohmann::json& value, const std::string& where, int& target) {
    std::uint64_t number = 0;
    read(value, where, number);
    if (number > std::numeric_limits<int>::max()) refuse_report(where, "is too large");
    target = static_cast<int>(number);
  }
  // All that is measured is 0 or more; the parser lets no infinities through.
  static void read(const nlohmann::json& value, const std::string& where, double& target) {
    if (!value.is_number()) refuse_report(where, "is no number");
    target = value.get<double>();
    if (!(target >= 0)) refuse_report(where, "is below 0");
  }
  template <IsReportChoice T>
  static void read(const nlohmann::json& value, const std::string& where, T& target) {
    std::string name;
    read(value, where, name);
    try {
      parse_choice(name, target);
    } catch (const ConfigError& error) {
      refuse_report(where, error.what());
    }
  }
  static void read(const nlohmann::json& value, const std::string& where, Samples& target) {
    ReportReader fields(value, where);
    fields("samples", target.values);
    double ignored = 0;  // They follow from the samples.
    for (const char* summary : {"median", "min", "max", "stdev"}) fields(summary, ignored);
    fields.refuse_unknown_keys();
  }
  template <class T>
  static void read(const nlohmann::json& value, const std::string& where,
                   std::optional<T>& target) {
    target.reset();
    if (!value.is_null()) read(value, where, target.emplace());
  }
  template <class T>
  static void read(const nlohmann::json& value, const std::string& where, std::vector<T>& target) {
    if (!value.is_array()) refuse_report(where, "is no list");
    target.clear();
    for (const nlohmann::json& item : value) {
      const std::string place = fmt::format("{}[{}]", where, target.size());
      read(item, place, target.emplace_back());
    }
  }
  template <HasReportFields T>
  static void read(const nlohmann::json& value, const std::string& where, T& target) {
    ReportReader fields(value, where);
    list_fields(fields, target);
    fields.refuse_unknown_keys();
  }

  const nlohmann::json& object_;
  const std::string& where_;
  const char* separator_;  // between `where` and a key
  std::set<std::string> known_;
};

// A whole document of a kind, which check_report_kind() has found right.
template <HasReportFields T>
T read_report(const nlohmann::json& document, const std::string& path) {
  T report;
  ReportReader fields(document, path, ": ");
  std::string format;
  int version = 0;
  fields("format", format);
  fields("schema_version", version);
  list_fields(fields, report);
  fields.refuse_unknown_keys();
  return report;
}

}  // namespace strata
