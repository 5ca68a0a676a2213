#pragma once
// The page that a plan's picture is drawn on: one time axis for all its parts.

#include <string>
#include <string_view>
#include <vector>

namespace strata {

struct PicturePage {
  static constexpr double width = 1200, left = 150, right = 24;
  static constexpr int columns = static_cast<int>(width - left - right);  // one a pixel

  double seconds = 1;  // that the axis spans

  double x_of(double time) const { return left + time / seconds * columns; }
};

struct LegendEntry {
  std::string name;
  std::string css_class;
};

// Entries in a row, or several when they do not fit; `y` moves below them.
std::string draw_legend(const std::vector<LegendEntry>& entries, double& y);
// A heading; `y` moves below it.
std::string draw_heading(const std::string& text, double& y);
// Lines down from `top` to `y`, with the seconds below; `y` moves below them.
std::string draw_time_axis(const PicturePage& page, double top, double& y);
// The whole document.
std::string picture_document(const std::string& body, double height, const std::string& name);

}  // namespace strata
