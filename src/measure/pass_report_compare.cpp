// Two PassReports side by side.

#include <fmt/format.h>

#include <algorithm>

#include "measure/report_units.hpp"
#include "strata/core/digits.hpp"
#include "strata/core/error.hpp"
#include "strata/core/text_table.hpp"
#include "strata/measure/pass_report.hpp"

namespace strata {
namespace {

bool is_same_pass(const PassResult& x, const PassResult& y) {
  return x.pass == y.pass && x.threads == y.threads && x.count == y.count;
}

const PassResult* find_pass(const PassReport& report, const PassResult& like) {
  const auto found = std::ranges::find_if(
      report.results, [&](const PassResult& result) { return is_same_pass(result, like); });
  return found == report.results.end() ? nullptr : &*found;
}

std::string rate_cell(const PassResult* result) {
  if (result == nullptr) return "-";
  const Samples rate = result->bytes_per_s();
  return fmt::format("{} ({}-{})", three_digits(rate.median() / giga),
                     three_digits(rate.min() / giga), three_digits(rate.max() / giga));
}

std::string pass_verdict(const PassResult* a, const PassResult* b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? "only in B" : "only in A";
  if (b->seconds.max() < a->seconds.min()) return "B is faster";
  if (b->seconds.min() > a->seconds.max()) return "B is slower";
  return "within the noise";
}

std::string speedup(const PassResult* a, const PassResult* b) {
  if (a == nullptr || b == nullptr || !(b->seconds.median() > 0)) return "-";
  return fmt::format("{:.2f}x", a->seconds.median() / b->seconds.median());
}

std::string ping_cell(const PassResult* result) {
  return result == nullptr || result->ping_ns.empty()
             ? "-"
             : fmt::format("{:.0f}", result->ping_ns.median());
}

void add_pass(TextTable& table, const PassResult* a, const PassResult* b) {
  const PassResult& either = a != nullptr ? *a : *b;
  table.add_row({either.pass, fmt::to_string(either.threads),
                 three_digits(static_cast<double>(either.count)), rate_cell(a), rate_cell(b),
                 speedup(a, b), ping_cell(a), ping_cell(b), pass_verdict(a, b)});
}

void add_difference(std::string& text, const char* name, const std::string& a,
                    const std::string& b) {
  if (a != b) text += fmt::format("differs: {:<8} A {}\n         {:<8} B {}\n", name, a, "", b);
}

// What may explain a difference.
std::string differences(const PassReport& a, const PassReport& b) {
  std::string text;
  add_difference(text, "strata", a.strata_version, b.strata_version);
  add_difference(text, "kernel", a.kernel, b.kernel);
  add_difference(text, "host", a.cpu, b.cpu);
  add_difference(text, "cores", fmt::to_string(a.usable_cores), fmt::to_string(b.usable_cores));
  add_difference(text, "load", fmt::format("{:.1f}", a.load_before),
                 fmt::format("{:.1f}", b.load_before));
  add_difference(text, "pages", fmt::to_string(a.page_bytes), fmt::to_string(b.page_bytes));
  return text;
}

}  // namespace

std::string compare_pass_reports(const PassReport& a, const PassReport& b) {
  if (a.bench != b.bench)
    throw ConfigError(fmt::format("A is a report of bench {}, B of bench {}: nothing to compare",
                                  pass_bench_name(a.bench), pass_bench_name(b.bench)));
  TextTable table({{"pass"},
                   {"threads", right},
                   {"elements", right},
                   {"A GB/s", right},
                   {"B GB/s", right},
                   {"speed B/A", right},
                   {"A ping ns", right},
                   {"B ping ns", right},
                   {"verdict"}});
  for (const PassResult& result : a.results) add_pass(table, &result, find_pass(b, result));
  for (const PassResult& result : b.results)
    if (find_pass(a, result) == nullptr) add_pass(table, nullptr, &result);
  return fmt::format(
      "A  {}\nB  {}\nGB is 1e9 bytes. Median (lowest-highest); faster or slower where the ranges "
      "do not overlap.\n\n{}\n{}",
      a.started_at, b.started_at, table.text(), differences(a, b));
}

}  // namespace strata
