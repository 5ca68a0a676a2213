#include "plan/memory_picture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/svg_chart_parts.hpp"
#include "plan/occupancy.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

constexpr double height = 190;
constexpr int columns_per_bin = 2, num_bins = PicturePage::columns / columns_per_bin;
// A limit far above what is held would flatten the picture: it is then told in words.
constexpr double limit_in_sight = 1.6;

struct Unit {
  double bytes = 1;
  const char* name = "B";
};
Unit unit_for(double bytes) {
  if (bytes >= 1024.0 * GiB) return {1024.0 * GiB, "TiB"};
  if (bytes >= GiB) return {static_cast<double>(GiB), "GiB"};
  if (bytes >= MiB) return {static_cast<double>(MiB), "MiB"};
  return {static_cast<double>(KiB), "KiB"};
}

std::uint64_t limit_of(const Plan& plan, Tier tier) {
  return tier == Tier::device ? plan.limits.device_bytes : plan.limits.host_bytes;
}

// Heights by byte, from the bottom of the chart.
class Chart {
 public:
  Chart(double top, double most, Unit unit)
      : top_(top), unit_(unit), ticks_(svg::nice_ticks(0, most / unit.bytes, 5)) {}

  double y_of(double bytes) const {
    return top_ + height * (1 - bytes / unit_.bytes / ticks_.high);
  }
  double bottom() const { return top_ + height; }

  std::string grid() const {
    std::string drawn;
    for (const double tick : ticks_.values) {
      const double y = y_of(tick * unit_.bytes);
      drawn += svg::line(PicturePage::left, y, PicturePage::left + PicturePage::columns, y, "grid");
      drawn += svg::label(PicturePage::left - 8, y + 4, svg::Anchor::end,
                          fmt::format("{:.{}f} {}", tick, ticks_.decimals, unit_.name), "faint");
    }
    return drawn;
  }

 private:
  double top_;
  Unit unit_;
  svg::Ticks ticks_;
};

// A step line through the bins' heights from the left, or back from the right.
std::string edge(const Chart& chart, const std::vector<std::uint64_t>& heights, bool forward) {
  std::string path;
  const int count = static_cast<int>(heights.size());
  for (int i = 0; i < count; ++i) {
    const int bin = forward ? i : count - 1 - i;
    const int end = forward ? bin + 1 : bin;
    const int next = forward ? bin + 1 : bin - 1;
    const auto at = static_cast<std::size_t>(bin);
    if (i == 0)
      path += fmt::format("V{}", svg::number(chart.y_of(static_cast<double>(heights[at]))));
    if (i + 1 < count && heights[static_cast<std::size_t>(next)] == heights[at]) continue;
    path += fmt::format("H{}", svg::number(PicturePage::left + end * columns_per_bin));
    if (i + 1 < count)
      path += fmt::format(
          "V{}",
          svg::number(chart.y_of(static_cast<double>(heights[static_cast<std::size_t>(next)]))));
  }
  return path;
}

// Stacked from the bottom; `below` is raised by what this class holds.
std::string layer(const Chart& chart, const std::vector<ClassBytes>& bins, std::size_t of,
                  std::vector<std::uint64_t>& below) {
  std::vector<std::uint64_t> above = below;
  for (std::size_t bin = 0; bin < bins.size(); ++bin) above[bin] += bins[bin][of];
  if (above == below) return {};
  const std::string path = fmt::format(
      "<path class=\"{}\" d=\"M{} {}{}{}Z\"/>\n", memory_class_name(static_cast<MemoryClass>(of)),
      svg::number(PicturePage::left), svg::number(chart.y_of(static_cast<double>(below.front()))),
      edge(chart, above, true), edge(chart, below, false));
  below = std::move(above);
  return path;
}

std::string level(const Chart& chart, std::uint64_t bytes, const std::string& css_class,
                  const std::string& text, const std::string& text_class, double text_offset) {
  const double y = chart.y_of(static_cast<double>(bytes));
  constexpr double right = PicturePage::left + PicturePage::columns;
  return svg::line(PicturePage::left, y, right, y, css_class) +
         svg::label(right - 4, y + text_offset, svg::Anchor::end, text, text_class);
}

std::vector<LegendEntry> classes_in(const std::vector<ClassBytes>& bins) {
  std::vector<LegendEntry> entries;
  for (std::size_t of = 0; of < num_memory_classes; ++of) {
    if (std::ranges::none_of(bins, [&](const ClassBytes& bytes) { return bytes[of] > 0; }))
      continue;
    const std::string name(memory_class_name(static_cast<MemoryClass>(of)));
    entries.push_back({name, name});
  }
  return entries;
}

std::string heading(const Plan& plan, Tier tier, bool limit_is_far) {
  const std::uint64_t limit = limit_of(plan, tier);
  std::string text = fmt::format("{} memory in use over one step; {} reserved",
                                 tier == Tier::device ? "GPU" : "CPU",
                                 format_bytes(plan.tier_bytes[static_cast<std::size_t>(tier)]));
  if (limit_is_far && limit != ~std::uint64_t{0})
    text += fmt::format(", the limit of {} lies above", format_bytes(limit));
  return text;
}

}  // namespace

std::string draw_memory(const PicturePage& page, const Program& program, const Plan& plan,
                        const Schedule& schedule, const Simulation& simulation, Tier tier,
                        double& y) {
  const auto reserved = static_cast<double>(plan.tier_bytes[static_cast<std::size_t>(tier)]);
  const auto limit = static_cast<double>(limit_of(plan, tier));
  const bool limit_is_far = limit > limit_in_sight * reserved;
  const double most = limit_is_far ? reserved : std::max(limit, reserved);
  std::string drawn = draw_heading(heading(plan, tier, limit_is_far), y);
  const std::vector<ClassBytes> bins =
      occupancy(program, plan, schedule, simulation, tier, num_bins);
  drawn += draw_legend(classes_in(bins), y);
  const Chart chart(y + 8, most, unit_for(most));
  drawn += chart.grid();
  std::vector<std::uint64_t> below(bins.size(), 0);
  for (std::size_t of = 0; of < num_memory_classes; ++of) drawn += layer(chart, bins, of, below);
  // The words of two lines that are close to each other stay apart: above one, below the other.
  drawn += level(chart, static_cast<std::uint64_t>(reserved), "reserved", "reserved", "faint", 13);
  if (!limit_is_far)
    drawn += level(chart, static_cast<std::uint64_t>(limit), "limit",
                   "limit " + format_bytes(limit_of(plan, tier)), "limit-text", -5);
  y = chart.bottom();
  return drawn + draw_time_axis(page, y, y);
}

}  // namespace strata
