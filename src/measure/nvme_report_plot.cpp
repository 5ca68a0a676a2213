// An NvmeReport as pictures.

#include <fmt/format.h>

#include <limits>

#include "nvme_report_parts.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/svg_chart.hpp"

namespace strata {
namespace {

ChartBar bar_of(const Samples* samples) {
  if (samples == nullptr || samples->empty())
    return {std::numeric_limits<double>::quiet_NaN(), 0, 0};
  return {samples->median() / bytes_per_gb, samples->min() / bytes_per_gb,
          samples->max() / bytes_per_gb};
}

std::vector<NvmePattern> patterns_in(const NvmeReport& report) {
  std::vector<NvmePattern> patterns;
  for (const NvmePattern pattern : nvme_patterns)
    if (std::ranges::find(report.results, pattern, &NvmeResult::pattern) != report.results.end())
      patterns.push_back(pattern);
  return patterns;
}

const Samples* fio_rate(const NvmeResult* result) {
  return result != nullptr && result->fio_bytes_per_s ? &*result->fio_bytes_per_s : nullptr;
}

void add_bars(BarChart& chart, const NvmeReport& report, const std::string& target) {
  BarSeries ours{nvme_target_title(target), {}}, fio{"fio, " + nvme_target_title(target), {}};
  bool has_fio = false;
  for (const NvmePattern pattern : patterns_in(report)) {
    const NvmeResult* result = find_nvme_result(report.results, pattern, target);
    ours.bars.push_back(bar_of(result == nullptr ? nullptr : &result->bytes_per_s));
    fio.bars.push_back(bar_of(fio_rate(result)));
    has_fio = has_fio || fio_rate(result) != nullptr;
  }
  chart.series.push_back(std::move(ours));
  if (has_fio) chart.series.push_back(std::move(fio));
}

BarChart bandwidth_bars(const NvmeReport& report) {
  BarChart chart;
  chart.title = fmt::format("Bandwidth: median and range of {} samples", report.repeats);
  chart.y_label = "GB/s (1e9 bytes, read plus written)";
  for (const NvmePattern pattern : patterns_in(report))
    chart.groups.emplace_back(nvme_pattern_name(pattern));
  for (const std::string& target : nvme_targets(report.results)) add_bars(chart, report, target);
  return chart;
}

HeatMap sweep_map(const SweepGrid& grid) {
  HeatMap map;
  map.title =
      fmt::format("Sweep: {}, {}", nvme_pattern_name(grid.pattern), nvme_target_title(grid.target));
  map.x_label = "blocks in flight per drive";
  map.y_label = "block";
  map.unit = "GB/s";
  for (const int depth : grid.depths) map.columns.push_back(fmt::to_string(depth));
  for (const std::uint64_t block : grid.blocks) map.rows.push_back(format_bytes(block));
  map.values = grid.bytes_per_s;
  for (auto& row : map.values)
    for (double& value : row) value /= bytes_per_gb;
  return map;
}

void add_sustained(LineChart& chart, const SustainedResult& sustained) {
  ChartSeries series{fmt::format("{}, {}", nvme_pattern_name(sustained.pattern),
                                 nvme_target_title(sustained.target)),
                     {},
                     {}};
  for (std::size_t i = 0; i < sustained.bytes_per_s.size(); ++i) {
    series.x.push_back((static_cast<double>(i) + 0.5) * sustained.interval_s);
    series.y.push_back(sustained.bytes_per_s[i] / bytes_per_gb);
  }
  chart.series.push_back(std::move(series));
  if (!sustained.knee) return;
  const double seconds = static_cast<double>(*sustained.knee) * sustained.interval_s;
  chart.marks.push_back({seconds, fmt::format("{} falls at {:.0f} s",
                                              nvme_pattern_name(sustained.pattern), seconds)});
}

LineChart sustained_lines(const NvmeReport& report) {
  LineChart chart;
  chart.title = "Bandwidth over time at full load";
  chart.x_label = "seconds";
  chart.y_label = "GB/s (1e9 bytes, read plus written)";
  for (const SustainedResult& sustained : report.sustained) add_sustained(chart, sustained);
  return chart;
}

}  // namespace

std::string plot_nvme_report(const NvmeReport& report) {
  SvgDocument document;
  if (!report.results.empty()) document.add(bandwidth_bars(report));
  for (const SweepGrid& grid : sweep_grids(report.sweep)) document.add(sweep_map(grid));
  if (!report.sustained.empty()) document.add(sustained_lines(report));
  return document.text();
}

}  // namespace strata
