#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "strata/core/digits.hpp"
#include "strata/core/error.hpp"
#include "svg_chart_parts.hpp"

namespace strata::svg {
namespace {

constexpr double cell_height = 32, cell_width_min = 46, cell_width_max = 96;

struct Color {
  double red = 0, green = 0, blue = 0;
  // Of the eye, roughly; 0 to 255.
  double brightness() const { return 0.299 * red + 0.587 * green + 0.114 * blue; }
};

// From pale yellow to deep blue: falls in brightness all the way, so it also reads in grey.
constexpr std::array<Color, 5> scale{
    {{255, 250, 205}, {161, 218, 180}, {65, 182, 196}, {34, 94, 168}, {12, 44, 132}}};

Color color_at(double share) {
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(scale.size() - 1);
  const auto index = std::min(static_cast<std::size_t>(place), scale.size() - 2);
  const double part = place - static_cast<double>(index);
  const Color &a = scale[index], &b = scale[index + 1];
  return {a.red + part * (b.red - a.red), a.green + part * (b.green - a.green),
          a.blue + part * (b.blue - a.blue)};
}

struct HeatRange {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  explicit HeatRange(const HeatMap& map) {
    for (const auto& row : map.values)
      for (const double value : row) {
        if (!std::isfinite(value)) continue;
        low = std::min(low, value);
        high = std::max(high, value);
      }
    // Values close to each other shall look close to each other.
    if (high > 0) low = std::min(low, high / 2);
  }
  double share(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

struct Grid {
  double left = 0, top = 0, cell_width = 0;
  double x(std::size_t column) const { return left + static_cast<double>(column) * cell_width; }
  double y(std::size_t row) const { return top + static_cast<double>(row) * cell_height; }
};

double widest(const std::vector<std::string>& labels) {
  double width = 0;
  for (const std::string& text : labels) width = std::max(width, text_width(text));
  return width;
}

Grid make_grid(const HeatMap& map, double top) {
  const double left = 44 + std::min(200.0, widest(map.rows)) + 8;
  const double num_columns = static_cast<double>(std::max<std::size_t>(1, map.columns.size()));
  const double fitting = (page_width - left - 24) / num_columns;
  const double wanted = std::clamp(widest(map.columns) + 14, 84.0, cell_width_max);
  return {left, top + 20, std::max(std::min(wanted, fitting), std::min(cell_width_min, fitting))};
}

std::string rect(double x, double y, double width, const std::string& attributes) {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}/>\n", number(x + 1),
                     number(y + 1), number(width - 2), number(cell_height - 2), attributes);
}

std::string draw_cell(const Grid& grid, std::size_t row, std::size_t column, double value,
                      const HeatRange& range) {
  const double x = grid.x(column), y = grid.y(row);
  const double middle = x + grid.cell_width / 2, base = y + cell_height / 2 + 4;
  if (!std::isfinite(value))
    return rect(x, y, grid.cell_width, "class=\"none\"") +
           label(middle, base, Anchor::middle, "-", "faint");
  const Color color = color_at(range.share(value));
  return rect(x, y, grid.cell_width,
              fmt::format("fill=\"#{:02x}{:02x}{:02x}\"", std::lround(color.red),
                          std::lround(color.green), std::lround(color.blue))) +
         label(middle, base, Anchor::middle, three_digits(value),
               color.brightness() < 140 ? "on-dark" : "on-light");
}

std::string draw_cells(const HeatMap& map, const Grid& grid) {
  const HeatRange range(map);
  std::string drawn, best;
  ensure(map.values.size() == map.rows.size());
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    ensure(map.values[row].size() == map.columns.size());
    for (std::size_t column = 0; column < map.columns.size(); ++column) {
      const double value = map.values[row][column];
      drawn += draw_cell(grid, row, column, value, range);
      if (best.empty() && value == range.high)
        best = rect(grid.x(column), grid.y(row), grid.cell_width, "class=\"best\"");
    }
  }
  return drawn + best;
}

std::string draw_labels(const HeatMap& map, const Grid& grid) {
  const double num_rows = static_cast<double>(map.rows.size());
  const double middle = grid.left + grid.cell_width * static_cast<double>(map.columns.size()) / 2;
  std::string drawn;
  for (std::size_t i = 0; i < map.columns.size(); ++i)
    drawn += label(grid.x(i) + grid.cell_width / 2, grid.top - 6, Anchor::middle,
                   shortened(map.columns[i], grid.cell_width), "faint");
  for (std::size_t i = 0; i < map.rows.size(); ++i)
    drawn += label(grid.left - 8, grid.y(i) + cell_height / 2 + 4, Anchor::end,
                   shortened(map.rows[i], grid.left - 51), "faint");
  drawn += label(middle, grid.y(map.rows.size()) + 18, Anchor::middle, map.x_label);
  return drawn + fmt::format(
                     "<text transform=\"translate(18 {}) rotate(-90)\" "
                     "text-anchor=\"middle\">{}</text>\n",
                     number(grid.top + cell_height * num_rows / 2), escape(map.y_label));
}

}  // namespace

Part draw(const HeatMap& map) {
  const std::string unit = map.unit.empty() ? "" : ", " + map.unit;
  Part part = header(map.title + unit, {});
  const Grid grid = make_grid(map, part.height);
  part.text += draw_cells(map, grid) + draw_labels(map, grid);
  part.height = grid.y(map.rows.size()) + 26;
  return part;
}

}  // namespace strata::svg
