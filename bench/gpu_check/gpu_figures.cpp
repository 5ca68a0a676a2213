#include "gpu_check/gpu_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace strata {
namespace {

// A figure, or the median of its samples.
double value_of(const CheckJson& json) {
  return json.is_object() ? json.at("median").get<double>() : json.get<double>();
}

// A rate that nobody measured would make every share of it look right.
double rate_of(const CheckJson& json, const char* name) {
  const double rate = value_of(json.at(name));
  if (rate > 0) return rate;
  throw std::runtime_error(fmt::format("{} is {}", name, rate));
}

std::string gigabytes(double bytes_per_s) { return fmt::format("{:.1f} GB/s", bytes_per_s / 1e9); }
double tera(double flops_per_s) { return flops_per_s / 1e12; }

CheckRow links_row(const CheckJson& json) {
  const CheckJson& links = json.at("links");
  const double h2d = rate_of(links, "h2d_bytes_per_s"), d2h = rate_of(links, "d2h_bytes_per_s"),
               both = rate_of(links, "both_bytes_per_s"),
               memory = rate_of(json, "memory_bytes_per_s");
  return passed(gpu_bench_parts()[0],
                fmt::format("H2D {}, D2H {}, both at once {}; device memory {}", gigabytes(h2d),
                            gigabytes(d2h), gigabytes(both), gigabytes(memory)),
                {{"h2d_bytes_per_s", h2d},
                 {"d2h_bytes_per_s", d2h},
                 {"both_bytes_per_s", both},
                 {"memory_bytes_per_s", memory}});
}

// The slowest of the products in bf16 beside the best square: what a layer's shapes make of it.
CheckRow matmul_row(const CheckJson& json) {
  const double peak = rate_of(json, "peak_matmul_flops_per_s");
  double least = peak;
  int products = 0;
  for (const CheckJson& product : json.at("matmul")) {
    if (product.at("dtype") != "bf16") continue;
    least = std::min(least, rate_of(product, "flops_per_s"));
    ++products;
  }
  return passed(gpu_bench_parts()[1],
                fmt::format("best {:.1f} TFLOP/s in bf16; the slowest of {} products reaches "
                            "{:.1f} ({:.0f}%)",
                            tera(peak), products, tera(least), 100 * least / peak),
                {{"peak_matmul_flops_per_s", peak}, {"matmul", json.at("matmul")}});
}

struct AttentionRates {
  double forward = 0, backward = 0;
};

std::map<std::int64_t, AttentionRates> best_attention(const CheckJson& json) {
  std::map<std::int64_t, AttentionRates> best;
  for (const CheckJson& a : json.at("attention")) {
    AttentionRates& rates = best[a.at("head_dim").get<std::int64_t>()];
    rates.forward = std::max(rates.forward, rate_of(a, "forward_flops_per_s"));
    rates.backward = std::max(rates.backward, rate_of(a, "backward_flops_per_s"));
  }
  return best;
}

CheckRow attention_row(const CheckJson& json) {
  const double peak = rate_of(json, "peak_matmul_flops_per_s");
  std::string told;
  for (const auto& [head_dim, rates] : best_attention(json))
    told += fmt::format(
        "heads of {}: forward {:.1f} TFLOP/s ({:.0f}% of the best product), "
        "backward {:.1f} ({:.0f}%); ",
        head_dim, tera(rates.forward), 100 * rates.forward / peak, tera(rates.backward),
        100 * rates.backward / peak);
  return passed(gpu_bench_parts()[2], told + "the best of all lengths",
                {{"attention", json.at("attention")}, {"peak_matmul_flops_per_s", peak}});
}

CheckRow adam_row(const CheckJson& json) {
  std::string told;
  for (const CheckJson& a : json.at("adam"))
    told += fmt::format("{}{}: {:.1f} Gparam/s, {}", told.empty() ? "" : "; ",
                        a.at("layout").get<std::string>(), rate_of(a, "params_per_s") / 1e9,
                        gigabytes(rate_of(a, "bytes_per_s")));
  return passed(gpu_bench_parts()[3], told, {{"adam", json.at("adam")}});
}

}  // namespace

const std::vector<std::string>& gpu_bench_parts() {
  static const std::vector<std::string> parts{"links", "matrix products", "attention",
                                              "Adam on the GPU"};
  return parts;
}

std::vector<CheckRow> gpu_bench_rows(const std::string& report) {
  const CheckJson json = CheckJson::parse(report);
  return {links_row(json), matmul_row(json), attention_row(json), adam_row(json)};
}

std::uint64_t gpu_memory_bytes(const std::string& report) {
  return CheckJson::parse(report).at("device").at("memory_bytes").get<std::uint64_t>();
}

double profile_value(const std::string& report, const std::string& field) {
  const CheckJson json = CheckJson::parse(report);
  const CheckJson& values = json.at("values");
  return values.contains(field) ? values[field].at("value").get<double>() : 0;
}

CheckRow profile_row(const std::string& part, const std::string& report) {
  const auto value = [&](const char* field) { return profile_value(report, field); };
  std::string told = fmt::format(
      "peak {:.2f} TFLOP/s, H2D {}, D2H {}, host memory {}",
      tera(value("accelerator.peak_flops_per_s")), gigabytes(value("link.up_bytes_per_s")),
      gigabytes(value("link.down_bytes_per_s")), gigabytes(value("host.memory_bytes_per_s")));
  if (value("drives[0].bytes") > 0)
    told += fmt::format(", NVMe read {}, write {}, new files {}, mixed {}",
                        gigabytes(value("drives[0].read_bytes_per_s")),
                        gigabytes(value("drives[0].write_bytes_per_s")),
                        gigabytes(value("drives[0].new_file_bytes_per_s")),
                        gigabytes(value("drives[0].mixed_bytes_per_s")));
  return passed(part, told, CheckJson::parse(report).at("values"));
}

}  // namespace strata
