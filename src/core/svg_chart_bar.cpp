#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strata/core/digits.hpp"
#include "strata/core/error.hpp"
#include "svg_chart_parts.hpp"

namespace strata::svg {
namespace {

constexpr double group_gap = 0.24;  // of a group's width
constexpr double bar_width_max = 64;

// Also the room that the values above the bars need.
Ticks y_ticks(const BarChart& chart) {
  double low = 0, high = 0;
  for (const BarSeries& series : chart.series)
    for (const ChartBar& bar : series.bars) {
      if (!std::isfinite(bar.value)) continue;
      low = std::min({low, bar.value, bar.low});
      high = std::max({high, bar.value, bar.high});
    }
  return nice_ticks(low, high * 1.08, 6);
}

std::string draw_bar(const Frame& frame, const ChartBar& bar, double x, double width,
                     std::size_t index) {
  if (!std::isfinite(bar.value)) return "";
  const double middle = x + width / 2;
  const double top = frame.py(std::max(bar.value, 0.0)),
               bottom = frame.py(std::min(bar.value, 0.0));
  std::string drawn =
      fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"s{}\"{}/>\n",
                  number(x), number(top), number(width), number(bottom - top), index % num_colors,
                  index >= num_colors ? " fill-opacity=\"0.35\"" : "");
  double above = top;
  if (bar.low < bar.high) {
    drawn += line(middle, frame.py(bar.low), middle, frame.py(bar.high), "whisker");
    above = std::min(above, frame.py(bar.high));
  }
  return drawn + label(middle, above - 5, Anchor::middle, three_digits(bar.value));
}

std::string draw_group(const Frame& frame, const BarChart& chart, std::size_t group) {
  const double slot = frame.width / static_cast<double>(chart.groups.size());
  const double num_bars = static_cast<double>(std::max<std::size_t>(1, chart.series.size()));
  const double width = std::min(bar_width_max, slot * (1 - group_gap) / num_bars);
  const double middle = frame.left + slot * (static_cast<double>(group) + 0.5);
  std::string drawn;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    ensure(chart.series[i].bars.size() == chart.groups.size());
    const double x = middle + width * (static_cast<double>(i) - num_bars / 2);
    drawn += draw_bar(frame, chart.series[i].bars[group], x + 2, width - 4, i);
  }
  return drawn + label(middle, frame.bottom() + 19, Anchor::middle,
                       shortened(chart.groups[group], slot - 6));
}

}  // namespace

Part draw(const BarChart& chart) {
  std::vector<std::string> names;
  for (const BarSeries& series : chart.series) names.push_back(series.name);
  Part part = header(chart.title, names);
  const Frame frame = make_frame(part.height, {}, y_ticks(chart));
  part.text += draw_y_axis(frame, chart.y_label);
  for (std::size_t i = 0; i < chart.groups.size(); ++i) part.text += draw_group(frame, chart, i);
  part.height = frame.bottom() + 28;
  return part;
}

}  // namespace strata::svg
