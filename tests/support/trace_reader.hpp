#pragma once
// Reads back what a trace file says, as a viewer would. Throws what nlohmann-json throws on a file
// that is not JSON.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace strata::testing {

struct TraceContent {
  using RowKey = std::pair<int, int>;  // process, row
  struct ReadSpan {
    RowKey row;
    std::string name, category;
    double start_us = 0, end_us = 0;
    std::map<std::string, std::string> arguments;  // numbers as digits
  };
  struct ReadFlow {  // the spans that its ends lie in
    std::optional<ReadSpan> from, to;
  };

  std::map<int, std::string> processes;
  std::map<RowKey, std::string> rows;
  std::map<RowKey, int> sorts_as;
  std::vector<ReadSpan> spans;       // of ops
  std::vector<ReadSpan> step_spans;  // of steps
  std::map<std::uint64_t, ReadFlow> flows;
  std::map<std::string, std::vector<std::pair<double, double>>> counters;  // us, value
  std::map<std::string, std::string> units;                                // of counters

  // Pairs of neighbours on a row of which one begins before the other has ended.
  int overlaps() const {
    std::map<RowKey, std::vector<std::pair<double, double>>> by_row;
    for (const auto* some : {&spans, &step_spans})
      for (const ReadSpan& span : *some) by_row[span.row].emplace_back(span.start_us, span.end_us);
    int found = 0;
    for (auto& [row, times] : by_row) {
      std::ranges::sort(times);
      for (std::size_t i = 1; i < times.size(); ++i)
        found += times[i].first < times[i - 1].second - 5e-4 ? 1 : 0;
    }
    return found;
  }
  // Of a counter over time, in seconds.
  double integral(const std::string& name) const {
    const auto& points = counters.at(name);
    double sum = 0;
    for (std::size_t i = 1; i < points.size(); ++i)
      sum += (points[i].first - points[i - 1].first) * 1e-6 * points[i - 1].second;
    return sum;
  }
  std::optional<ReadSpan> span_at(const RowKey& row, double at_us) const {
    for (const ReadSpan& span : spans)
      if (span.row == row && span.start_us <= at_us + 1e-4 && at_us < span.end_us + 1e-4 &&
          (span.start_us == span.end_us || at_us < span.end_us - 1e-4))
        return span;
    return {};
  }
};

inline TraceContent read_trace(const std::filesystem::path& path) {
  std::ifstream stream(path);
  const auto events = nlohmann::json::parse(stream);
  TraceContent content;
  const auto row_of = [](const auto& event) {
    return TraceContent::RowKey{event.at("pid"), event.at("tid")};
  };
  for (const auto& event : events) {
    const std::string kind = event.at("ph"), name = event.at("name");
    const auto& arguments = event.contains("args") ? event.at("args") : event;
    if (kind == "M" && name == "process_name")
      content.processes[event.at("pid")] = arguments.at("name");
    if (kind == "M" && name == "thread_name") content.rows[row_of(event)] = arguments.at("name");
    if (kind == "M" && name == "thread_sort_index")
      content.sorts_as[row_of(event)] = arguments.at("sort_index");
    if (kind == "C") {
      content.units[name] = arguments.begin().key();
      content.counters[name].emplace_back(event.at("ts"), arguments.begin().value());
    }
    if (kind != "X") continue;
    const double start = event.at("ts"), length = event.at("dur");
    auto& spans = event.at("cat") == "step" ? content.step_spans : content.spans;
    spans.push_back({row_of(event), name, event.at("cat"), start, start + length, {}});
    for (const auto& [key, value] : arguments.items())
      spans.back().arguments[key] =
          value.is_string() ? value.template get<std::string>() : value.dump();
  }
  for (const auto& event : events) {
    const std::string kind = event.at("ph");
    if (kind != "s" && kind != "f") continue;
    auto& flow = content.flows[event.at("id")];
    (kind == "s" ? flow.from : flow.to) = content.span_at(row_of(event), event.at("ts"));
  }
  return content;
}

}  // namespace strata::testing
