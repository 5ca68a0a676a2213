#include "strata/core/svg_chart.hpp"

#include <fmt/format.h>

#include "svg_chart_parts.hpp"

namespace strata {
namespace {

constexpr double gap = 18;  // between charts

// Two palettes of equal order; both keep their contrast for people who see few colours.
constexpr const char* style = R"(<style>
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; font-size: 12px; fill: #24292f }
.title { font-size: 15px; font-weight: 600 }
.faint { fill: #57606a }
.page { fill: #ffffff }
.axis { stroke: #57606a; stroke-width: 1 }
.grid { stroke: #d8dee4; stroke-width: 1 }
.whisker { stroke: #24292f; stroke-width: 1.5 }
.mark { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 5 3 }
.mark-text { fill: #cf222e }
.none { fill: #eaeef2 }
.best { fill: none; stroke: #cf222e; stroke-width: 3 }
.on-dark { fill: #ffffff }
.on-light { fill: #101418 }
.s0 { stroke: #0969da; fill: #0969da }
.s1 { stroke: #bc4c00; fill: #bc4c00 }
.s2 { stroke: #1a7f37; fill: #1a7f37 }
.s3 { stroke: #8250df; fill: #8250df }
.s4 { stroke: #bf3989; fill: #bf3989 }
.s5 { stroke: #6e7781; fill: #6e7781 }
.line { fill: none; stroke-width: 2; stroke-linejoin: round }
.dashed { stroke-dasharray: 6 4 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.faint { fill: #9ea7b1 }
.page { fill: #0d1117 }
.axis { stroke: #9ea7b1 }
.grid { stroke: #30363d }
.whisker { stroke: #e6edf3 }
.mark { stroke: #ff7b72 }
.mark-text { fill: #ff7b72 }
.none { fill: #21262d }
.best { stroke: #ff7b72 }
.on-dark { fill: #ffffff }
.on-light { fill: #101418 }
.s0 { stroke: #58a6ff; fill: #58a6ff }
.s1 { stroke: #f0883e; fill: #f0883e }
.s2 { stroke: #3fb950; fill: #3fb950 }
.s3 { stroke: #bc8cff; fill: #bc8cff }
.s4 { stroke: #f778ba; fill: #f778ba }
.s5 { stroke: #b1bac4; fill: #b1bac4 }
.line { fill: none }
}
</style>
)";

void append(std::vector<std::string>& parts, double& height, const svg::Part& part) {
  parts.push_back(fmt::format("<g transform=\"translate(0 {})\">\n{}</g>\n",
                              svg::number(height + gap / 2), part.text));
  height += part.height + gap;
}

}  // namespace

void SvgDocument::add(const LineChart& chart) { append(parts_, height_, svg::draw(chart)); }
void SvgDocument::add(const BarChart& chart) { append(parts_, height_, svg::draw(chart)); }
void SvgDocument::add(const HeatMap& map) { append(parts_, height_, svg::draw(map)); }

std::string SvgDocument::text() const {
  const std::string width = svg::number(svg::page_width), height = svg::number(height_);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" role=\"img\">\n{2}<rect class=\"page\" width=\"{0}\" height=\"{1}\"/>\n",
      width, height, style);
  for (const std::string& part : parts_) text += part;
  return text + "</svg>\n";
}

}  // namespace strata
