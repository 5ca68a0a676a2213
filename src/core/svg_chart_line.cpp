#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "strata/core/error.hpp"
#include "svg_chart_parts.hpp"

namespace strata::svg {
namespace {

constexpr int ticks_max = 8;
constexpr std::size_t dots_max = 40;  // more would only thicken the line

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return low > high; }
};

Ticks x_ticks(const LineChart& chart) {
  Range range;
  for (const ChartSeries& series : chart.series)
    for (const double x : series.x) range.take(x);
  for (const ChartMark& mark : chart.marks) range.take(mark.x);
  return range.is_empty() ? nice_ticks(0, 1, ticks_max)
                          : nice_ticks(range.low, range.high, ticks_max);
}

// The axis shows zero: a part of it would make noise look like change.
Ticks y_ticks(const LineChart& chart) {
  Range range;
  range.take(0);
  for (const ChartSeries& series : chart.series)
    for (const double y : series.y) range.take(y);
  return nice_ticks(range.low, range.high, 6);
}

std::string dot(double x, double y, std::size_t index) {
  return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"3\" class=\"s{}\"/>\n", number(x), number(y),
                     index % num_colors);
}

std::string stretch(const std::string& points, std::size_t index) {
  return fmt::format("<polyline class=\"s{} line{}\" points=\"{}\"/>\n", index % num_colors,
                     index >= num_colors ? " dashed" : "", points);
}

// Points that are not finite break the line.
std::string draw_series(const Frame& frame, const ChartSeries& series, std::size_t index) {
  ensure(series.x.size() == series.y.size());
  std::string drawn, points, dots;
  const auto end_stretch = [&] {
    if (!points.empty()) drawn += stretch(points, index);
    points.clear();
  };
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) {
      end_stretch();
      continue;
    }
    const double x = frame.px(series.x[i]), y = frame.py(series.y[i]);
    points += fmt::format("{}{},{}", points.empty() ? "" : " ", number(x), number(y));
    if (series.x.size() <= dots_max) dots += dot(x, y, index);
  }
  end_stretch();
  return drawn + dots;
}

std::string draw_mark(const Frame& frame, const ChartMark& mark) {
  if (!std::isfinite(mark.x)) return "";
  const double x = frame.px(mark.x);
  const bool is_far_right = x + 6 + text_width(mark.text) > frame.left + frame.width;
  return line(x, frame.top, x, frame.bottom(), "mark") +
         label(is_far_right ? x - 6 : x + 6, frame.top + 12,
               is_far_right ? Anchor::end : Anchor::start, mark.text, "mark-text");
}

}  // namespace

Part draw(const LineChart& chart) {
  std::vector<std::string> names;
  for (const ChartSeries& series : chart.series) names.push_back(series.name);
  Part part = header(chart.title, names);
  const Frame frame = make_frame(part.height, x_ticks(chart), y_ticks(chart));
  part.text += draw_y_axis(frame, chart.y_label) + draw_x_axis(frame, chart.x_label);
  for (std::size_t i = 0; i < chart.series.size(); ++i)
    part.text += draw_series(frame, chart.series[i], i);
  for (const ChartMark& mark : chart.marks) part.text += draw_mark(frame, mark);
  part.height = frame.bottom() + 46;
  return part;
}

}  // namespace strata::svg
