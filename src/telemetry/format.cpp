#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "strata/core/bytes.hpp"
#include "strata/core/digits.hpp"
#include "strata/telemetry/progress.hpp"

namespace strata {
namespace {

// 812, 12.3k, 1.2M: three digits are what a person reads.
std::string format_rate(double per_second) {
  if (per_second < 9999.5) return fmt::format("{:.0f}", per_second);
  if (per_second < 999'950) return fmt::format("{:.1f}k", per_second / 1e3);
  return fmt::format("{:.1f}M", per_second / 1e6);
}

std::string format_waits(const StepReport& report) {
  std::string text;
  for (const auto& [cause, seconds] : report.waits)
    text += fmt::format(" {} {:.2f}", cause, seconds);
  return text.empty() ? text : fmt::format(" (wait:{})", text);
}

std::string format_flops(const StepReport& report) {
  const double rate = report.model.flops_per_s(report.seconds);
  if (rate <= 0) return "";
  const double mfu = report.model.mfu(report.seconds);
  return fmt::format(" | {}{}", scaled(rate, "FLOP/s"),
                     mfu > 0 ? fmt::format(", MFU {:.0f}%", 100 * mfu) : "");
}

std::string format_rest(const StepReport& report) {
  const double per_second =
      report.seconds > 0 ? static_cast<double>(report.tokens) / report.seconds : 0;
  const std::string of_bound =
      report.of_bound > 0 ? fmt::format(", {:.0f}% of the bound", 100 * report.of_bound) : "";
  return fmt::format("{} tok/s{} | {:.2f} s{}{}", format_rate(per_second), format_flops(report),
                     report.seconds, of_bound, format_waits(report));
}

}  // namespace

std::string format_step(const StepReport& report, double eta_seconds) {
  std::string text = fmt::format("step {}/{} | loss {:.3f} | norm {:.2f} | lr {:.1e} | {}",
                                 report.step, report.total_steps, report.loss, report.grad_norm,
                                 report.learning_rate, format_rest(report));
  if (std::isfinite(eta_seconds) && eta_seconds >= 0)
    text += " | eta " + format_duration(eta_seconds);
  if (!report.applied) text += " | skipped: non-finite gradients";
  return text;
}

std::string format_saved(const SaveReport& report) {
  const double per_second = static_cast<double>(report.bytes) / std::fmax(report.seconds, 1e-9);
  std::string text =
      fmt::format("saved {} at step {}: {} in {:.2f} s ({}/s), verified", report.path, report.step,
                  format_bytes(report.bytes), report.seconds,
                  format_bytes(static_cast<std::uint64_t>(per_second)));
  if (report.steps_meanwhile == 0) return text;
  text += fmt::format("; step {} took {:.2f} s more", report.step + 1,
                      std::fmax(0, report.carrier_extra_seconds));
  if (report.steps_meanwhile == 1) return text;
  return text + fmt::format(", the {} steps meanwhile {:.2f} s", report.steps_meanwhile,
                            std::fmax(0, report.extra_seconds));
}

std::string format_written(const WrittenBytes& written) {
  std::string text;
  const auto add = [&](std::uint64_t bytes, const char* where) {
    if (bytes == 0) return;
    text += text.empty() ? "written  " : ", ";
    text += scaled(static_cast<double>(bytes), "B") + where;
  };
  add(written.nvme, " to NVMe");
  add(written.checkpoints, " of checkpoints");
  return text;
}

std::string format_duration(double seconds) {
  constexpr double seconds_max = 1e9;  // 30 years; also bounds the conversion
  const auto whole =
      static_cast<std::int64_t>(std::lround(std::fmin(std::fmax(seconds, 0), seconds_max)));
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}h{:02}m", hours, minutes);
  if (minutes > 0) return fmt::format("{}m{:02}s", minutes, whole % 60);
  return fmt::format("{}s", whole);
}

Style terminal_style(std::FILE* stream) {
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  const bool is_terminal = stream != nullptr && ::isatty(::fileno(stream)) == 1;
  return is_terminal && !is_dumb && std::getenv("NO_COLOR") == nullptr ? Style::color
                                                                       : Style::plain;
}

}  // namespace strata
