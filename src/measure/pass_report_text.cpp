// A PassReport as a table for people.

#include <fmt/format.h>

#include <algorithm>

#include "measure/report_units.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/digits.hpp"
#include "strata/core/text_table.hpp"
#include "strata/measure/pass_report.hpp"

namespace strata {
namespace {

std::string ping_text(const Samples& ns) {
  if (ns.empty()) return "-";
  return fmt::format("{:.0f}, {:.0f}", ns.values.front(), ns.values.back());
}

std::string format_pass_head(const PassReport& report) {
  std::string text = fmt::format(
      "strata {}, {}\nGB is 1e9 bytes. Rates count bytes read plus bytes written: median "
      "(lowest-highest) of {} samples.\n\nhost     {}, kernel {}\ncores    {} usable; load {:.1f} "
      "before, {:.1f} after\nmemory   on pages of {}\n",
      report.strata_version, report.started_at, report.repeats, report.cpu, report.kernel,
      report.usable_cores, report.load_before, report.load_after, format_bytes(report.page_bytes));
  if (!report.ping_cores.empty())
    text += fmt::format("ping     between cores {}, one way, before and after each row's samples\n",
                        report.ping_cores);
  return text + "\n";
}

// What memory moves: the lines that normal stores fetch first included.
std::string moved(const PassResult& result) {
  const double share =
      (result.bytes_per_element + result.allocate_bytes_per_element) / result.bytes_per_element;
  return three_digits(result.bytes_per_s().median() * share / giga);
}

std::string memory_table(const PassReport& report) {
  TextTable table({{"pass"},
                   {"threads", right},
                   {"B/element", right},
                   {"GB/s", right},
                   {"with fetched lines", right},
                   {"ping ns", right}});
  for (const PassResult& r : report.results)
    table.add_row({r.pass, fmt::to_string(r.threads), three_digits(r.bytes_per_element),
                   with_range(r.bytes_per_s(), giga), moved(r), ping_text(r.ping_ns)});
  return table.text();
}

std::string adam_table(const PassReport& report) {
  TextTable table({{"pass"},
                   {"threads", right},
                   {"parameters", right},
                   {"Mparam/s", right},
                   {"B/param", right},
                   {"GB/s", right},
                   {"roofline", right},
                   {"of roofline", right},
                   {"ping ns", right}});
  for (const PassResult& r : report.results)
    table.add_row({r.pass, fmt::to_string(r.threads), three_digits(static_cast<double>(r.count)),
                   three_digits(r.elements_per_s().median() / mega),
                   three_digits(r.bytes_per_element), with_range(r.bytes_per_s(), giga),
                   three_digits(r.roofline_bytes_per_s().median() / giga),
                   with_range(r.of_roofline(), 1), ping_text(r.ping_ns)});
  return table.text() +
         "An update is named by gradient/master/moments. Its roofline touches the same bytes in "
         "the "
         "same\norder without the arithmetic; the two take turns.\n";
}

}  // namespace

std::string format_pass_report(const PassReport& report) {
  std::string text = format_pass_head(report);
  text += report.bench == PassBench::memory ? memory_table(report) : adam_table(report);
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace strata
