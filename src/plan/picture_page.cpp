#include "plan/picture_page.hpp"

#include <fmt/format.h>

#include "core/svg_chart_parts.hpp"

namespace strata {
namespace {

constexpr double swatch = 12, legend_row = 20;

// Colours tell what is moved or computed, in all parts of the picture alike.
constexpr const char* style = R"(<style>
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; font-size: 12px; fill: #24292f }
.title { font-size: 15px; font-weight: 600 }
.faint { fill: #57606a }
.page { fill: #ffffff }
.lane { fill: #f3f5f7 }
.axis { stroke: #57606a; stroke-width: 1 }
.grid { stroke: #d8dee4; stroke-width: 1 }
.limit { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 6 4 }
.reserved { stroke: #57606a; stroke-width: 1; stroke-dasharray: 2 3 }
.limit-text { fill: #cf222e }
.weights { fill: #4c8dda }
.master { fill: #8250df }
.moments { fill: #c678dd }
.gradients { fill: #e0823d }
.activations { fill: #3fa35b }
.scratch { fill: #c9b458 }
.other { fill: #8c959f }
.forward { fill: #2b6cb0 }
.backward { fill: #a3481b }
.loss { fill: #cf222e }
.optimizer { fill: #5a32a3 }
.sums { fill: #b58863 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.faint { fill: #9ea7b1 }
.page { fill: #0d1117 }
.lane { fill: #161b22 }
.axis { stroke: #9ea7b1 }
.grid { stroke: #30363d }
.limit { stroke: #ff7b72 }
.reserved { stroke: #9ea7b1 }
.limit-text { fill: #ff7b72 }
.forward { fill: #58a6ff }
.backward { fill: #f0883e }
.optimizer { fill: #d2a8ff }
}
</style>
)";

}  // namespace

std::string draw_legend(const std::vector<LegendEntry>& entries, double& y) {
  std::string drawn;
  double x = PicturePage::left;
  for (const LegendEntry& entry : entries) {
    const double width = swatch + 6 + svg::text_width(entry.name) + 16;
    if (x + width > PicturePage::width && x > PicturePage::left)
      x = PicturePage::left, y += legend_row;
    drawn += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"/>\n",
                         svg::number(x), svg::number(y), swatch, swatch, entry.css_class);
    drawn += svg::label(x + swatch + 6, y + 10, svg::Anchor::start, entry.name);
    x += width;
  }
  y += legend_row;
  return drawn;
}

std::string draw_heading(const std::string& text, double& y) {
  y += 22;
  const std::string drawn = svg::label(16, y, svg::Anchor::start, text, "title");
  y += 10;
  return drawn;
}

std::string draw_time_axis(const PicturePage& page, double top, double& y) {
  std::string drawn;
  const svg::Ticks ticks = svg::nice_ticks(0, page.seconds, 12);
  for (const double tick : ticks.values) {
    if (tick > page.seconds) break;
    const double x = page.x_of(tick);
    drawn += svg::line(x, top, x, y + 4, "grid");
    drawn += svg::label(x, y + 18, svg::Anchor::middle,
                        fmt::format("{:.{}f}", tick, ticks.decimals), "faint");
  }
  drawn += svg::line(PicturePage::left, y, PicturePage::left + PicturePage::columns, y, "axis");
  drawn += svg::label(PicturePage::left - 10, y + 18, svg::Anchor::end, "seconds", "faint");
  y += 28;
  return drawn;
}

std::string picture_document(const std::string& body, double height, const std::string& name) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" role=\"img\" aria-label=\"{2}\">\n{3}<rect class=\"page\" width=\"{0}\" "
      "height=\"{1}\"/>\n{4}</svg>\n",
      PicturePage::width, svg::number(height), svg::escape(name), style, body);
}

}  // namespace strata
