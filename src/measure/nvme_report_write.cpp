// An NvmeReport as JSON.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "nvme_report_fields.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using nlohmann::ordered_json;

class FieldWriter {
 public:
  template <class T>
  void operator()(const char* key, const T& value) {
    object_[key] = json_of(value, key);
  }
  ordered_json take() { return std::move(object_); }

 private:
  template <class T>
  static ordered_json json_of(const T& value, const char*) {
    return value;
  }
  // JSON has no other numbers, and a reader would have to guess.
  static ordered_json json_of(double value, const char* key) {
    if (!std::isfinite(value))
      throw Error(fmt::format("cannot write the report: {} is {}, no finite number", key, value));
    return value;
  }
  static ordered_json json_of(NvmePattern pattern, const char*) {
    return nvme_pattern_name(pattern);
  }
  static ordered_json json_of(const Samples& samples, const char* key) {
    return {{"samples", json_of(samples.values, key)},
            {"median", samples.median()},
            {"min", samples.min()},
            {"max", samples.max()},
            {"stdev", samples.stdev()}};
  }
  template <HasNvmeFields T>
  static ordered_json json_of(const T& value, const char*) {
    FieldWriter fields;
    list_fields(fields, value);
    return fields.take();
  }
  template <class T>
  static ordered_json json_of(const std::optional<T>& value, const char* key) {
    return value ? json_of(*value, key) : ordered_json();
  }
  template <class T>
  static ordered_json json_of(const std::vector<T>& values, const char* key) {
    ordered_json array = ordered_json::array();
    for (const T& value : values) array.push_back(json_of(value, key));
    return array;
  }

  ordered_json object_ = ordered_json::object();
};

}  // namespace

std::string to_json(const NvmeReport& report) {
  FieldWriter fields;
  fields("format", std::string(nvme_report_format));
  fields("schema_version", NvmeReport::schema_version);
  list_fields(fields, report);
  // A path may hold bytes that are no UTF-8.
  return fields.take().dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace strata
