#pragma once
// What the charts of svg_chart.hpp are made of: escaped text, numbers, ticks, and the frame that
// charts with axes share.

#include <string>
#include <string_view>
#include <vector>

#include "strata/core/svg_chart.hpp"

namespace strata::svg {

inline constexpr double page_width = 760;
inline constexpr int num_colors = 6;

// One chart, drawn from (0, 0).
struct Part {
  std::string text;
  double height = 0;
};

struct Ticks {
  double low = 0, high = 1;    // of the axis; both are ticks
  std::vector<double> values;  // multiples of 1, 2 or 5 times a power of ten
  int decimals = 0;            // that the labels need
};
Ticks nice_ticks(double low, double high, int num_max);

enum class Anchor : unsigned char { start, middle, end };

// Text of an XML document: markup escaped, what XML 1.0 does not allow replaced.
std::string escape(std::string_view text);
std::string number(double value);          // a coordinate
double text_width(std::string_view text);  // about, in the font of labels
std::string label(double x, double y, Anchor anchor, std::string_view text,
                  std::string_view css_class = "");
std::string line(double x1, double y1, double x2, double y2, std::string_view css_class);
// The beginning of a path, as much as is about `width` wide left out.
std::string shortened(const std::string& text, double width);

// The plot area between axes, with its scales.
struct Frame {
  double left = 0, top = 0, width = 0, height = 0;
  Ticks x, y;  // x is empty where the axis has groups
  double px(double value) const { return left + (value - x.low) / (x.high - x.low) * width; }
  double py(double value) const {
    return top + height - (value - y.low) / (y.high - y.low) * height;
  }
  double bottom() const { return top + height; }
};

// Title and legend; `height` is where the plot may begin.
Part header(const std::string& title, const std::vector<std::string>& names);
Frame make_frame(double top, const Ticks& x, const Ticks& y);
std::string draw_y_axis(const Frame& frame, const std::string& text);
std::string draw_x_axis(const Frame& frame, const std::string& text);

Part draw(const LineChart& chart);
Part draw(const BarChart& chart);
Part draw(const HeatMap& map);

}  // namespace strata::svg
