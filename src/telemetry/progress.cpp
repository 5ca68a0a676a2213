#include "strata/telemetry/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>

#include "line_file.hpp"
#include "metrics_cut.hpp"
#include "metrics_json.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr const char* bold = "\033[1m";
constexpr const char* dim = "\033[2m";
constexpr const char* yellow = "\033[33m";
constexpr const char* red = "\033[31m";
constexpr const char* reset = "\033[0m";

fs::path created(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw SystemError("create folder", folder.string(), error.value());
  return folder;
}

// Padded behind the count, so that the columns of a run's lines stand below each other.
std::string aligned(const StepReport& report, std::string line) {
  const std::size_t digits = fmt::formatted_size("{}", report.step);
  const std::size_t digits_max = fmt::formatted_size("{}", report.total_steps);
  const std::size_t end = line.find(" | ");
  if (digits < digits_max && end != std::string::npos) line.insert(end, digits_max - digits, ' ');
  return line;
}

}  // namespace

struct Progress::Impl {
  Impl(const fs::path& output_dir, Style chosen, std::FILE* stream)
      : metrics(created(output_dir) / "metrics.jsonl"), style(chosen), terminal(stream) {}

  std::string colored(const char* color, const std::string& text) const {
    return style == Style::color ? color + text + reset : text;
  }
  // A terminal that went away must not end the run.
  void print(const std::string& text) const {
    if (terminal == nullptr) return;
    std::fprintf(terminal, "%s\n", text.c_str());
    std::fflush(terminal);
  }
  void warn(const std::string& text) const { print(colored(yellow, "! " + text)); }
  void record(const std::string& line);
  double eta(const StepReport& report);
  std::string paint(const StepReport& report, const std::string& line) const;

  LineFile metrics;
  Style style;
  std::FILE* terminal;
  bool has_warned = false;
  double seconds_per_step = 0;
  int steps_seen = 0;
  WrittenBytes written_before;
};

// Losing metrics is no reason to lose the run; saying so at every step would drown the terminal.
void Progress::Impl::record(const std::string& line) {
  const int error = metrics.append(line);
  if (error == 0 || has_warned) return;
  has_warned = true;
  warn(fmt::format(
      "cannot write {}: {}. Training goes on, metrics are lost until it can be written again",
      metrics.path().string(), std::strerror(error)));
}

// A running mean with the memory of about ten steps, for speed may change for good. The first step
// counts only until there is a second: it builds what the others find built.
double Progress::Impl::eta(const StepReport& report) {
  constexpr double weight_of_new_min = 0.1;
  if (!std::isfinite(report.seconds)) return std::numeric_limits<double>::quiet_NaN();
  const double share = std::max(weight_of_new_min, 1.0 / std::max(1, steps_seen++));
  seconds_per_step += share * (report.seconds - seconds_per_step);
  if (report.step >= report.total_steps) return std::numeric_limits<double>::quiet_NaN();
  return seconds_per_step * static_cast<double>(report.total_steps - report.step);
}

std::string Progress::Impl::paint(const StepReport& report, const std::string& line) const {
  if (style == Style::plain) return line;
  if (!report.applied || !std::isfinite(report.loss)) return colored(red, line);
  const std::size_t head_end = line.find(" | ");
  const std::size_t loss_end = line.find(" | ", head_end + 3);
  return line.substr(0, head_end) + colored(bold, line.substr(head_end, loss_end - head_end)) +
         colored(dim, line.substr(loss_end));
}

Progress::Progress(const fs::path& output_dir, Style style, std::FILE* terminal,
                   std::int64_t resumed_step) {
  WrittenBytes written;
  if (resumed_step >= 0) written = cut_metrics(output_dir / "metrics.jsonl", resumed_step);
  impl_ = std::make_unique<Impl>(output_dir, style, terminal);
  impl_->written_before = written;
}

Progress::~Progress() = default;

WrittenBytes Progress::written_before() const { return impl_->written_before; }

void Progress::step(const StepReport& report, bool show) {
  const double eta = impl_->eta(report);
  impl_->record(step_json(report));
  if (show) impl_->print(impl_->paint(report, aligned(report, format_step(report, eta))));
}

void Progress::evaluation(std::int64_t step, double loss, std::int64_t tokens) {
  impl_->record(evaluation_json(step, loss, tokens));
  const std::string line =
      fmt::format("eval at step {} | loss {:.4f} | perplexity {:.2f} | {} tokens", step, loss,
                  std::exp(loss), tokens);
  impl_->print(impl_->colored(bold, line));
}

void Progress::saved(const SaveReport& report) {
  impl_->record(saved_json(report));
  impl_->print(format_saved(report));
}

void Progress::event(const std::string& name, const std::string& text) {
  impl_->record(event_json(name, text));
  impl_->warn(text);
}

}  // namespace strata
