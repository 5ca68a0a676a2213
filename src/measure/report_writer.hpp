#pragma once
// Writes the structs of a report as JSON, from the lists of their fields (report_fields.hpp).

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report_fields.hpp"
#include "strata/core/error.hpp"
#include "strata/measure/samples.hpp"

namespace strata {

class ReportWriter {
 public:
  using Json = nlohmann::ordered_json;

  template <class T>
  void operator()(const char* key, const T& value) {
    object_[key] = json_of(value, key);
  }
  template <class T>
  void added(const char* key, const std::optional<T>& value) {
    (*this)(key, value);
  }
  template <class T>
  void derived(const char* key, const T& value) {
    (*this)(key, value);
  }
  Json take() { return std::move(object_); }
  std::string text() const {
    // A path may hold bytes that are no UTF-8.
    return object_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  template <class T>
  static Json json_of(const T& value, const char*) {
    return value;
  }
  // JSON has no other numbers, and a reader would have to guess.
  static Json json_of(double value, const char* key) {
    if (!std::isfinite(value))
      throw Error(fmt::format("cannot write the report: {} is {}, no finite number", key, value));
    return value;
  }
  template <IsReportChoice T>
  static Json json_of(const T& value, const char*) {
    return choice_name(value);
  }
  static Json json_of(const Samples& samples, const char* key) {
    return {{"samples", json_of(samples.values, key)},
            {"median", samples.median()},
            {"min", samples.min()},
            {"max", samples.max()},
            {"stdev", samples.stdev()}};
  }
  template <HasReportFields T>
  static Json json_of(const T& value, const char*) {
    ReportWriter fields;
    list_fields(fields, value);
    return fields.take();
  }
  template <class T>
  static Json json_of(const std::optional<T>& value, const char* key) {
    return value ? json_of(*value, key) : Json();
  }
  template <class T>
  static Json json_of(const std::vector<T>& values, const char* key) {
    Json array = Json::array();
    for (const T& value : values) array.push_back(json_of(value, key));
    return array;
  }

  Json object_ = Json::object();
};

}  // namespace strata
