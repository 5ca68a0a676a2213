// A GpuReport as a table for people.

#include <fmt/format.h>

#include "measure/report_units.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/digits.hpp"
#include "strata/core/text_table.hpp"
#include "strata/measure/gpu_report.hpp"

namespace strata {
namespace {

std::string in_giga(double rate) { return three_digits(rate / giga); }
std::string in_tera(double rate) { return three_digits(rate / tera); }
std::string part_of(double rate, double whole) {
  return whole > 0 ? fmt::format("{:.2f}", rate / whole) : "-";
}

std::string device_text(const MeasuredDevice& device) {
  if (device.compute.empty())
    return fmt::format("{}, {} free of {}", device.name, format_bytes(device.usable_bytes),
                       format_bytes(device.memory_bytes));
  return fmt::format("{} (device {} at {}), compute {}, {} multiprocessors, {} free of {}",
                     device.name, device.ordinal, device.pci_address, device.compute, device.sms,
                     format_bytes(device.usable_bytes), format_bytes(device.memory_bytes));
}

std::string head(const GpuReport& report) {
  std::string text = fmt::format("device   {}\n", device_text(report.device));
  if (!report.device.driver_version.empty())
    text += fmt::format("CUDA     built for {}; driver's {}\n", report.device.runtime_version,
                        report.device.driver_version);
  return text + fmt::format(
                    "host     {}, kernel {}\n"
                    "samples  {} of {} ms or one call; times are medians\n\n",
                    report.cpu, report.kernel, report.repeats,
                    three_digits(report.sample_seconds * 1e3));
}

std::string transfers_table(const GpuReport& report) {
  TextTable table({{"copies"}, {"GB/s", right}});
  table.add_row({"host to device, pinned", with_range(report.links.h2d, giga)});
  table.add_row({"device to host, pinned", with_range(report.links.d2h, giga)});
  table.add_row({"both at once, sum", with_range(report.links.both, giga)});
  table.add_row({"within the device, read + written", with_range(report.memory_bytes_per_s, giga)});
  return table.text();
}

std::string products_table(const GpuReport& report) {
  TextTable table({{"product"},
                   {"dtype"},
                   {"tokens", right},
                   {"outputs", right},
                   {"inputs", right},
                   {"ms", right},
                   {"TFLOP/s", right},
                   {"of the best square", right}});
  const double best = report.peak_matmul_flops_per_s();
  for (const MeasuredProduct& p : report.matmul)
    table.add_row({p.pass, p.dtype, fmt::to_string(p.m), fmt::to_string(p.n), fmt::to_string(p.k),
                   three_digits(p.seconds.median() * 1e3), in_tera(p.flops_per_s()),
                   part_of(p.flops_per_s(), best)});
  return table.text();
}

std::string attention_table(const GpuReport& report) {
  TextTable table({{"attention, causal"},
                   {"tokens", right},
                   {"heads", right},
                   {"kv heads", right},
                   {"head", right},
                   {"forward TFLOP/s", right},
                   {"of the best square", right},
                   {"backward TFLOP/s", right},
                   {"of the best square", right}});
  const double best = report.peak_matmul_flops_per_s();
  for (const MeasuredAttention& a : report.attention)
    table.add_row({a.dtype, fmt::to_string(a.tokens), fmt::to_string(a.heads),
                   fmt::to_string(a.kv_heads), fmt::to_string(a.head_dim),
                   in_tera(a.forward_flops_per_s()), part_of(a.forward_flops_per_s(), best),
                   in_tera(a.backward_flops_per_s()), part_of(a.backward_flops_per_s(), best)});
  return table.text() +
         "FLOPs are those of the causal half: 2 t^2 q d forward, 5 t^2 q d backward (t tokens, q "
         "heads of d).\n";
}

std::string updates_table(const GpuReport& report) {
  TextTable table({{"AdamW, gradient/master/moments"},
                   {"parameters", right},
                   {"B/param", right},
                   {"Gparam/s", right},
                   {"GB/s", right},
                   {"of copies", right}});
  for (const MeasuredUpdate& u : report.adam)
    table.add_row({u.layout, three_digits(static_cast<double>(u.parameters)),
                   three_digits(u.bytes / static_cast<double>(u.parameters)),
                   in_giga(u.params_per_s()), in_giga(u.bytes_per_s()),
                   part_of(u.bytes_per_s(), report.memory_bytes_per_s.median())});
  return table.text();
}

std::string passes_table(const GpuReport& report) {
  TextTable table({{"pass over memory"},
                   {"rows", right},
                   {"width", right},
                   {"ms", right},
                   {"GB/s", right},
                   {"of copies", right}});
  for (const MeasuredPass& p : report.passes)
    table.add_row({p.pass, fmt::to_string(p.rows), fmt::to_string(p.width),
                   three_digits(p.seconds.median() * 1e3), in_giga(p.bytes_per_s()),
                   part_of(p.bytes_per_s(), report.memory_bytes_per_s.median())});
  return table.text();
}

std::string launches_table(const GpuReport& report) {
  TextTable table({{"calls in a row"}, {"us", right}});
  table.add_row({"addition of one element", with_range(report.launch_seconds, micro)});
  table.add_row({"product of 16 x 16 x 16", with_range(report.matmul_launch_seconds, micro)});
  return table.text();
}

}  // namespace

std::string format_gpu_report(const GpuReport& report) {
  std::string text = head(report);
  for (const auto& table : {transfers_table, products_table, attention_table, updates_table,
                            passes_table, launches_table})
    text += table(report) + "\n";
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace strata
