// Two NvmeReports side by side.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "measure/report_units.hpp"
#include "nvme_report_parts.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/text_table.hpp"

namespace strata {
namespace {

// A target of A and its counterpart in B: the drives of two machines have different paths, so
// drives are paired by their order. Empty: none.
struct TargetPair {
  std::string a, b;
  std::string title() const {
    if (a.empty() || b.empty() || a == b) return nvme_target_title(a.empty() ? b : a);
    return a + " | " + b;
  }
};

std::vector<std::string> drives_in(const NvmeReport& report) {
  std::vector<std::string> targets = nvme_targets(report.results);
  std::erase(targets, all_drives);
  return targets;
}

bool measures_all(const NvmeReport& report) {
  return std::ranges::find(report.results, all_drives, &NvmeResult::target) != report.results.end();
}

std::vector<TargetPair> pair_targets(const NvmeReport& a, const NvmeReport& b) {
  const std::vector<std::string> in_a = drives_in(a), in_b = drives_in(b);
  std::vector<TargetPair> pairs;
  for (std::size_t i = 0; i < std::max(in_a.size(), in_b.size()); ++i)
    pairs.push_back({i < in_a.size() ? in_a[i] : "", i < in_b.size() ? in_b[i] : ""});
  const std::string all(all_drives);
  if (measures_all(a) || measures_all(b))
    pairs.push_back({measures_all(a) ? all : "", measures_all(b) ? all : ""});
  return pairs;
}

// What a report has of one row; nullptr: nothing.
struct MeasuredRate {
  const Samples *rate = nullptr, *cpu = nullptr;
};

MeasuredRate over_old_blocks(const NvmeResult* result) {
  if (result == nullptr) return {};
  return {&result->bytes_per_s, &result->cpu_seconds_per_gb};
}

MeasuredRate into_new_files(const NvmeResult* result) {
  if (result == nullptr || !result->new_file_bytes_per_s) return {};
  return {&*result->new_file_bytes_per_s, nullptr};
}

std::string verdict(const Samples* a, const Samples* b) {
  if (a == nullptr) return "only in B";
  if (b == nullptr) return "only in A";
  if (b->min() > a->max()) return "B is faster";
  if (b->max() < a->min()) return "B is slower";
  return "within the noise";
}

std::string ratio_cell(const Samples* a, const Samples* b) {
  if (a == nullptr || b == nullptr || !(a->median() > 0)) return "-";
  return fmt::format("{:.2f}x", b->median() / a->median());
}

std::string rate_cell(const Samples* rate) { return rate == nullptr ? "-" : gb_per_s_range(*rate); }

void add_rates(TextTable& table, std::string title, const TargetPair& pair, const MeasuredRate& a,
               const MeasuredRate& b) {
  if (a.rate == nullptr && b.rate == nullptr) return;
  table.add_row({std::move(title), pair.title(), rate_cell(a.rate), rate_cell(b.rate),
                 ratio_cell(a.rate, b.rate), ratio_cell(a.cpu, b.cpu), verdict(a.rate, b.rate)});
}

void add_pair(TextTable& table, NvmePattern pattern, const TargetPair& pair, const NvmeReport& a,
              const NvmeReport& b) {
  const NvmeResult* in_a = find_nvme_result(a.results, pattern, pair.a);
  const NvmeResult* in_b = find_nvme_result(b.results, pattern, pair.b);
  add_rates(table, std::string(nvme_pattern_name(pattern)), pair, over_old_blocks(in_a),
            over_old_blocks(in_b));
  add_rates(table, new_files_title, pair, into_new_files(in_a), into_new_files(in_b));
}

std::string drive_line(const NvmeReport& report) {
  std::string text;
  for (const DriveFacts& drive : report.drives)
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", drive.file_system,
                        drive.model.empty() ? drive.device : drive.model);
  return text;
}

void add_fact(std::string& text, const std::string& name, const std::string& a,
              const std::string& b) {
  if (a != b) text += fmt::format("differs: {:<8} A {}\n         {:<8} B {}\n", name, a, "", b);
}

// What may explain a difference.
std::string differing_facts(const NvmeReport& a, const NvmeReport& b) {
  const auto asked = [](const NvmeReport& r) {
    return fmt::format("blocks of {}, {} in flight, files of {}", format_bytes(r.best_block_bytes),
                       r.best_depth, format_bytes(r.file_bytes));
  };
  std::string text;
  add_fact(text, "strata", a.strata_version, b.strata_version);
  add_fact(text, "kernel", a.kernel, b.kernel);
  add_fact(text, "host", a.cpu, b.cpu);
  add_fact(text, "io", a.engine, b.engine);
  add_fact(text, "pages", format_bytes(a.buffer_page_bytes), format_bytes(b.buffer_page_bytes));
  add_fact(text, "drives", drive_line(a), drive_line(b));
  add_fact(text, "asked", asked(a), asked(b));
  return text;
}

}  // namespace

std::string compare_nvme_reports(const NvmeReport& a, const NvmeReport& b) {
  TextTable table({{"pattern"},
                   {"where"},
                   {"A GB/s", right},
                   {"B GB/s", right},
                   {"B/A", right},
                   {"CPU B/A", right},
                   {"verdict"}});
  for (const TargetPair& pair : pair_targets(a, b))
    for (const NvmePattern pattern : nvme_patterns) add_pair(table, pattern, pair, a, b);
  return fmt::format(
      "A  {}\nB  {}\nGB is 1e9 bytes. Median (lowest-highest); faster or slower where the ranges "
      "do "
      "not overlap.\n\n{}\n{}",
      a.started_at, b.started_at, table.text(), differing_facts(a, b));
}

}  // namespace strata
