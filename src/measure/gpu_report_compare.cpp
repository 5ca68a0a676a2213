// Two GpuReports side by side.

#include <fmt/format.h>

#include <algorithm>

#include "measure/report_units.hpp"
#include "strata/core/digits.hpp"
#include "strata/core/text_table.hpp"
#include "strata/measure/gpu_report.hpp"

namespace strata {
namespace {

// One row: what is measured, and how much of it a second.
struct GpuFigure {
  std::string name, unit;
  Samples rates;  // in the unit
};

Samples scaled(const Samples& samples, double unit) {
  Samples result;
  for (const double value : samples.values) result.values.push_back(value / unit);
  return result;
}

Samples per_second(double amount, const Samples& seconds) {
  Samples result;
  for (const double s : seconds.values) result.values.push_back(s > 0 ? amount / s : 0);
  return result;
}

void add_copies(std::vector<GpuFigure>& figures, const GpuReport& report) {
  figures.push_back({"host to device", "GB/s", scaled(report.links.h2d, giga)});
  figures.push_back({"device to host", "GB/s", scaled(report.links.d2h, giga)});
  figures.push_back({"both at once", "GB/s", scaled(report.links.both, giga)});
  figures.push_back({"within the device", "GB/s", scaled(report.memory_bytes_per_s, giga)});
}

void add_compute(std::vector<GpuFigure>& figures, const GpuReport& report) {
  for (const MeasuredProduct& p : report.matmul)
    figures.push_back({fmt::format("{} {} {} x {} x {}", p.dtype, p.pass, p.m, p.n, p.k), "TFLOP/s",
                       per_second(p.flops / tera, p.seconds)});
  for (const MeasuredAttention& a : report.attention) {
    const std::string shape = fmt::format("attention {}, {} of {}", a.tokens, a.heads, a.head_dim);
    figures.push_back(
        {shape + ", forward", "TFLOP/s", per_second(a.forward_flops / tera, a.forward_seconds)});
    figures.push_back(
        {shape + ", backward", "TFLOP/s", per_second(a.backward_flops / tera, a.backward_seconds)});
  }
}

void add_passes(std::vector<GpuFigure>& figures, const GpuReport& report) {
  for (const MeasuredUpdate& u : report.adam)
    figures.push_back({"adamw " + u.layout, "GB/s", per_second(u.bytes / giga, u.seconds)});
  for (const MeasuredPass& p : report.passes)
    figures.push_back({fmt::format("{} {} x {}", p.pass, p.rows, p.width), "GB/s",
                       per_second(p.bytes / giga, p.seconds)});
  figures.push_back({"calls", "M/s", per_second(1 / mega, report.launch_seconds)});
  figures.push_back(
      {"calls of products", "M/s", per_second(1 / mega, report.matmul_launch_seconds)});
}

std::vector<GpuFigure> figures_of(const GpuReport& report) {
  std::vector<GpuFigure> figures;
  add_copies(figures, report);
  add_compute(figures, report);
  add_passes(figures, report);
  return figures;
}

const GpuFigure* find_figure(const std::vector<GpuFigure>& figures, const std::string& name) {
  const auto found = std::ranges::find(figures, name, &GpuFigure::name);
  return found == figures.end() ? nullptr : &*found;
}

std::string range_cell(const GpuFigure* figure) {
  if (figure == nullptr) return "-";
  return fmt::format("{} ({}-{})", three_digits(figure->rates.median()),
                     three_digits(figure->rates.min()), three_digits(figure->rates.max()));
}

std::string figure_verdict(const GpuFigure* a, const GpuFigure* b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? "only in B" : "only in A";
  if (b->rates.min() > a->rates.max()) return "B is faster";
  if (b->rates.max() < a->rates.min()) return "B is slower";
  return "within the noise";
}

std::string figure_ratio(const GpuFigure* a, const GpuFigure* b) {
  if (a == nullptr || b == nullptr || !(a->rates.median() > 0)) return "-";
  return fmt::format("{:.2f}x", b->rates.median() / a->rates.median());
}

void add_figure(TextTable& table, const GpuFigure* a, const GpuFigure* b) {
  const GpuFigure& either = a != nullptr ? *a : *b;
  table.add_row({either.name, either.unit, range_cell(a), range_cell(b), figure_ratio(a, b),
                 figure_verdict(a, b)});
}

std::string of_device(const char* which, const GpuReport& report) {
  return fmt::format("{}  {}, {}, strata {}, driver's CUDA {}\n", which, report.device.name,
                     report.started_at, report.strata_version,
                     report.device.driver_version.empty() ? "-" : report.device.driver_version);
}

}  // namespace

std::string compare_gpu_reports(const GpuReport& a, const GpuReport& b) {
  TextTable table(
      {{"what"}, {"unit"}, {"A", right}, {"B", right}, {"speed B/A", right}, {"verdict"}});
  const std::vector<GpuFigure> of_a = figures_of(a), of_b = figures_of(b);
  for (const GpuFigure& figure : of_a) add_figure(table, &figure, find_figure(of_b, figure.name));
  for (const GpuFigure& figure : of_b)
    if (find_figure(of_a, figure.name) == nullptr) add_figure(table, nullptr, &figure);
  return of_device("A", a) + of_device("B", b) +
         "GB is 1e9 bytes. Median (lowest-highest); faster or slower where the ranges do not "
         "overlap.\n\n" +
         table.text();
}

}  // namespace strata
