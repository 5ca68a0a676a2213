// An NvmeReport as tables for people.

#include <fmt/format.h>

#include <cmath>

#include "measure/report_units.hpp"
#include "nvme_report_parts.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/digits.hpp"
#include "strata/core/text_table.hpp"

namespace strata {
namespace {

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts)
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  return text.empty() ? "nothing is known of it" : text;
}

std::string prefixed(const std::string& prefix, const std::string& text) {
  return text.empty() ? "" : prefix + text;
}

std::string mounted(const DriveFacts& drive) {
  const std::string options =
      drive.mount_options.empty() ? "" : fmt::format(" ({})", drive.mount_options);
  return join({drive.file_system + prefixed(" at ", drive.mount_point) + options,
               fmt::format("{} free of {}", format_bytes(drive.free_bytes),
                           format_bytes(drive.total_bytes))});
}

std::string kind(const std::optional<bool>& rotational) {
  if (!rotational) return "";
  return *rotational ? "rotational, by its own word" : "solid state";
}

std::string hardware(const DriveFacts& drive) {
  const std::string numa = drive.numa_node ? fmt::format("NUMA node {}", *drive.numa_node) : "";
  return join({drive.device.empty() ? "no block device of its own" : drive.device, drive.model,
               kind(drive.rotational), prefixed("PCIe ", drive.pcie_link), numa});
}

std::string direct_io(const DriveFacts& drive) {
  if (!drive.direct_alignment) return "O_DIRECT: alignment unknown";
  if (*drive.direct_alignment == 0) return "no O_DIRECT";
  return fmt::format("O_DIRECT aligned to {} bytes", *drive.direct_alignment);
}

std::string queue(const DriveFacts& drive) {
  const auto& logical = drive.logical_sector_bytes;
  const auto& physical = drive.physical_sector_bytes;
  const std::string sectors =
      logical && physical ? fmt::format("sectors of {}/{} bytes", *logical, *physical) : "";
  const std::string requests = drive.request_bytes_max
                                   ? "requests of at most " + format_bytes(*drive.request_bytes_max)
                                   : "";
  return join({direct_io(drive), sectors, requests, prefixed("scheduler ", drive.scheduler),
               prefixed("write cache: ", drive.write_cache)});
}

std::string format_head(const NvmeReport& report) {
  std::string text = fmt::format(
      "strata {}, {}\nGB is 1e9 bytes. Rates count bytes read plus bytes written: median "
      "(lowest-highest) of {} samples.\n\n",
      report.strata_version, report.started_at, report.repeats);
  for (const DriveFacts& drive : report.drives)
    text += fmt::format("drive    {}\n         {}\n         {}\n         {}\n", drive.path,
                        mounted(drive), hardware(drive), queue(drive));
  text += fmt::format("host     {}, kernel {}\nio       {}\nbuffers  on pages of {}\n", report.cpu,
                      report.kernel, report.engine, format_bytes(report.buffer_page_bytes));
  return text + fmt::format("files    {} per drive; {} read back and compared\n\n",
                            format_bytes(report.file_bytes), format_bytes(report.verified_bytes));
}

std::string milliseconds(double microseconds) { return three_digits(microseconds / 1e3); }

std::string times(double ours, double theirs) {
  return theirs > 0 ? fmt::format("{:.2f}x", ours / theirs) : "-";
}

std::vector<std::string> fio_cells(const NvmeResult& result) {
  if (!result.fio_bytes_per_s) return {"-", "-", "-"};
  const double cpu = result.cpu_seconds_per_gb.median();
  return {
      gb_per_s_range(*result.fio_bytes_per_s),
      times(result.bytes_per_s.median(), result.fio_bytes_per_s->median()),
      result.fio_cpu_seconds_per_gb ? times(cpu, result.fio_cpu_seconds_per_gb->median()) : "-"};
}

bool has_fio(const NvmeReport& report) {
  return std::ranges::any_of(report.results,
                             [](const NvmeResult& r) { return r.fio_bytes_per_s.has_value(); });
}

std::string format_fio_jobs(const NvmeReport& report) {
  std::string text;
  for (const NvmeResult& r : report.results)
    if (!r.fio_job.empty())
      text += fmt::format("fio {} on {}: {}\n", nvme_pattern_name(r.pattern),
                          nvme_target_title(r.target), r.fio_job);
  return text;
}

std::vector<TextTable::Column> result_columns(bool with_fio) {
  std::vector<TextTable::Column> columns{{"pattern"},       {"where"},         {"block", right},
                                         {"depth", right},  {"GB/s", right},   {"p50 ms", right},
                                         {"p99 ms", right}, {"max ms", right}, {"CPU s/GB", right}};
  if (with_fio)
    columns.insert(columns.end(), {{"fio GB/s", right}, {"x fio", right}, {"x fio CPU", right}});
  return columns;
}

std::vector<std::string> result_cells(const NvmeResult& r, bool with_fio) {
  std::vector<std::string> cells{std::string(nvme_pattern_name(r.pattern)),
                                 nvme_target_title(r.target),
                                 format_bytes(r.block_bytes),
                                 fmt::to_string(r.depth),
                                 gb_per_s_range(r.bytes_per_s),
                                 milliseconds(r.latency.p50_us),
                                 milliseconds(r.latency.p99_us),
                                 milliseconds(r.latency.max_us),
                                 three_digits(r.cpu_seconds_per_gb.median())};
  if (with_fio)
    for (std::string& cell : fio_cells(r)) cells.push_back(std::move(cell));
  return cells;
}

// Only its rate is measured.
std::vector<std::string> new_files_cells(const NvmeResult& r, std::size_t num_cells) {
  std::vector<std::string> cells{new_files_title, nvme_target_title(r.target),
                                 format_bytes(r.block_bytes), fmt::to_string(r.depth),
                                 gb_per_s_range(*r.new_file_bytes_per_s)};
  cells.resize(num_cells, "-");
  return cells;
}

std::string format_results(const NvmeReport& report) {
  if (report.results.empty()) return "";
  const bool with_fio = has_fio(report);
  const std::vector<TextTable::Column> columns = result_columns(with_fio);
  TextTable table(columns);
  for (const NvmeResult& r : report.results) {
    table.add_row(result_cells(r, with_fio));
    if (r.new_file_bytes_per_s) table.add_row(new_files_cells(r, columns.size()));
  }
  return table.text() + format_fio_jobs(report) + "\n";
}

std::string format_grid(const SweepGrid& grid) {
  std::vector<TextTable::Column> columns{{"block \\ depth"}};
  for (const int depth : grid.depths) columns.push_back({fmt::to_string(depth), right});
  TextTable table(columns);
  const double best = grid.best();
  for (std::size_t row = 0; row < grid.blocks.size(); ++row) {
    std::vector<std::string> cells{format_bytes(grid.blocks[row])};
    for (const double value : grid.bytes_per_s[row])
      cells.push_back(gb_per_s(value) + (value == best ? "*" : " "));
    table.add_row(std::move(cells));
  }
  return fmt::format("sweep: {}, {}, GB/s (* highest)\n{}\n", nvme_pattern_name(grid.pattern),
                     nvme_target_title(grid.target), table.text());
}

std::string format_sweep(const NvmeReport& report) {
  if (report.sweep.empty()) return "";
  std::string text;
  for (const SweepGrid& grid : sweep_grids(report.sweep)) text += format_grid(grid);
  return text + fmt::format("chosen: blocks of {}, {} in flight per drive\n\n",
                            format_bytes(report.best_block_bytes), report.best_depth);
}

std::string format_sustained(const SustainedResult& s) {
  const double seconds = s.interval_s * static_cast<double>(s.bytes_per_s.size());
  const std::string name = fmt::format("sustained {} on {}: ", nvme_pattern_name(s.pattern),
                                       nvme_target_title(s.target));
  if (!s.knee)
    return fmt::format("{}{} GB/s (median), no knee in {:.0f} s\n", name,
                       gb_per_s(Samples{s.bytes_per_s}.median()), seconds);
  return fmt::format("{}{} GB/s for {:.0f} s, then {} GB/s to the end at {:.0f} s\n", name,
                     gb_per_s(s.before_knee_bytes_per_s),
                     s.interval_s * static_cast<double>(*s.knee),
                     gb_per_s(s.after_knee_bytes_per_s), seconds);
}

std::string format_sync(const Samples& seconds) {
  if (seconds.empty()) return "";
  const auto shown = [](double s) { return milliseconds(s * 1e6); };
  return fmt::format("fsync after a sample of writes: {} ms ({}-{})\n", shown(seconds.median()),
                     shown(seconds.min()), shown(seconds.max()));
}

}  // namespace

std::string format_nvme_report(const NvmeReport& report) {
  std::string text = format_head(report) + format_results(report) + format_sweep(report);
  for (const SustainedResult& sustained : report.sustained) text += format_sustained(sustained);
  text += format_sync(report.sync_seconds);
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace strata
