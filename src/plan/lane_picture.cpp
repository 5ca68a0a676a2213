#include "plan/lane_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "core/svg_chart_parts.hpp"
#include "plan/occupancy.hpp"

namespace strata {
namespace {

constexpr double row_height = 24, row_gap = 8;
constexpr int levels = 6;  // of busyness that a row tells apart

// What an op is drawn as: what it moves (the memory classes come first), or what it computes.
enum class SpanKind : std::uint8_t {
  forward = num_memory_classes,
  backward,
  loss,
  optimizer,
  sums,
};
constexpr std::size_t num_span_kinds = num_memory_classes + 5;

std::string span_kind_name(std::size_t kind) {
  if (kind < num_memory_classes)
    return std::string(memory_class_name(static_cast<MemoryClass>(kind)));
  constexpr const char* names[] = {"forward", "backward", "loss", "optimizer", "sums"};
  return names[kind - num_memory_classes];
}

std::string span_kind_text(std::size_t kind) {
  if (kind == static_cast<std::size_t>(SpanKind::sums)) return "gradient sums and norm";
  return kind == static_cast<std::size_t>(MemoryClass::other) ? "other" : span_kind_name(kind);
}

std::size_t kind_of_run(const Program& program, const Op& op) {
  switch (program.segment(op.segment).kind) {
    case SegmentKind::backward:
      return static_cast<std::size_t>(SpanKind::backward);
    case SegmentKind::loss:
      return static_cast<std::size_t>(SpanKind::loss);
    default:
      return static_cast<std::size_t>(SpanKind::forward);
  }
}

std::size_t kind_of(const Program& program, const Op& op) {
  switch (op.kind) {
    case OpKind::run:
      return kind_of_run(program, op);
    case OpKind::update:
      return static_cast<std::size_t>(SpanKind::optimizer);
    case OpKind::accumulate:
    case OpKind::square:
    case OpKind::norm:
    case OpKind::sum:
      return static_cast<std::size_t>(SpanKind::sums);
    default:
      return static_cast<std::size_t>(op.operands.empty()
                                          ? MemoryClass::other
                                          : memory_class_of(program, op.operands.front().what));
  }
}

// The order of the pipeline, lanes of one resource together.
constexpr std::array<Lane, num_lanes> rows{
    Lane::read, Lane::state_read, Lane::h2d,    Lane::state_h2d, Lane::compute,     Lane::comm,
    Lane::d2h,  Lane::state_d2h,  Lane::update, Lane::write,     Lane::state_write, Lane::save};

// Seconds by kind in each column of one row.
class Row {
 public:
  explicit Row(double step_seconds) : column_seconds_(step_seconds / PicturePage::columns) {}

  void add(std::size_t kind, double start, double end) {
    const double step = column_seconds_ * PicturePage::columns;
    const double shift = std::floor(start / step) * step;
    start -= shift, end -= shift;
    for (auto column = static_cast<std::int64_t>(start / column_seconds_);
         static_cast<double>(column) * column_seconds_ < end; ++column) {
      const double begins = static_cast<double>(column) * column_seconds_;
      const double part = std::min(end, begins + column_seconds_) - std::max(start, begins);
      columns_[static_cast<std::size_t>(column % PicturePage::columns)][kind] +=
          std::max(0.0, part);
    }
  }

  // Paths by kind: a run of columns that are alike is one rectangle.
  std::array<std::string, num_span_kinds> paths(double bottom) const {
    std::array<std::string, num_span_kinds> paths;
    for (std::size_t begin = 0; begin < columns_.size();) {
      const Look look = look_of(begin);
      std::size_t end = begin + 1;
      while (end < columns_.size() && look_of(end) == look) ++end;
      if (look.level > 0) {
        const double high = row_height * look.level / levels;
        paths[look.kind] +=
            fmt::format("M{} {}v-{}h{}v{}z", PicturePage::left + double(begin), svg::number(bottom),
                        svg::number(high), end - begin, svg::number(high));
      }
      begin = end;
    }
    return paths;
  }

 private:
  struct Look {
    std::size_t kind = 0;
    int level = 0;
    bool operator==(const Look&) const = default;
  };
  Look look_of(std::size_t column) const {
    const auto& seconds = columns_[column];
    double busy = 0;
    for (const double s : seconds) busy += s;
    const auto most = std::ranges::max_element(seconds);
    if (busy <= 0) return {};
    const double share = std::min(1.0, busy / column_seconds_);
    return {static_cast<std::size_t>(most - seconds.begin()),
            std::max(1, static_cast<int>(std::lround(share * levels)))};
  }

  double column_seconds_;
  std::array<std::array<double, num_span_kinds>, PicturePage::columns> columns_{};
};

std::string draw_row(const Row& row, const std::string& name, double share, double y) {
  std::string drawn =
      fmt::format("<rect class=\"lane\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                  PicturePage::left, svg::number(y), PicturePage::columns, row_height);
  drawn += svg::label(PicturePage::left - 8, y + 11, svg::Anchor::end, name);
  drawn += svg::label(PicturePage::left - 8, y + 24, svg::Anchor::end,
                      fmt::format("{:.0f}% busy", 100 * share), "faint");
  const auto paths = row.paths(y + row_height);
  for (std::size_t kind = 0; kind < paths.size(); ++kind)
    if (!paths[kind].empty())
      drawn += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", span_kind_name(kind), paths[kind]);
  return drawn;
}

std::vector<LegendEntry> kinds_in(const Program& program, const Schedule& schedule) {
  std::set<std::size_t> kinds;
  for (const Op& op : schedule.ops) kinds.insert(kind_of(program, op));
  std::vector<LegendEntry> entries;
  for (const std::size_t kind : kinds)
    entries.push_back({span_kind_text(kind), span_kind_name(kind)});
  return entries;
}

Row row_of(const Program& program, const Schedule& schedule, const Simulation& simulation,
           Lane lane) {
  Row row(simulation.step_seconds);
  for (const OpId id : schedule.lanes[static_cast<std::size_t>(lane)]) {
    const OpTime& time = simulation.ops[id.index()];
    row.add(kind_of(program, schedule.ops[id.index()]), time.start, time.end);
  }
  return row;
}

}  // namespace

std::string draw_lanes(const PicturePage& page, const Program& program, const Schedule& schedule,
                       const Simulation& simulation, double& y) {
  std::string drawn = draw_heading("What each lane does", y), lanes;
  drawn += draw_legend(kinds_in(program, schedule), y);
  const double top = y += 4;
  for (const Lane lane : rows) {
    const auto index = static_cast<std::size_t>(lane);
    if (schedule.lanes[index].empty()) continue;
    const double share = simulation.lane_busy[index] / simulation.step_seconds;
    lanes += draw_row(row_of(program, schedule, simulation, lane), std::string(lane_label(lane)),
                      share, y);
    y += row_height + row_gap;
  }
  const std::string axis = draw_time_axis(page, top, y);
  return drawn + axis + lanes;
}

}  // namespace strata
