#include "cli/progress_line.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "strata/core/clock.hpp"

namespace strata {
namespace {

constexpr std::int64_t redraw_ns = 100'000'000;
constexpr int cells = 24;
constexpr double eta_after = 0.05;  // before, a guess from so little would only jump

std::size_t columns_of(std::FILE* stream) {
  winsize size = {};
  const bool is_known = ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : 80;
}

std::string bar(double done, Style style) {
  const auto full = static_cast<std::size_t>(done * cells);
  const std::string filled(full, '='), empty(cells - full, ' ');
  return style == Style::color ? "[\033[32m" + filled + "\033[0m" + empty + "]"
                               : "[" + filled + empty + "]";
}

}  // namespace

ProgressShape progress_shape(std::FILE* stream) {
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return !is_dumb && ::isatty(::fileno(stream)) == 1 ? ProgressShape::bar : ProgressShape::lines;
}

ProgressLine::ProgressLine(std::FILE* stream, ProgressShape shape, Style style, double line_every_s)
    : stream_(stream),
      shape_(shape),
      style_(style),
      line_every_ns_(static_cast<std::int64_t>(line_every_s * 1e9)),
      start_ns_(now_ns()),
      drawn_ns_(start_ns_) {}

ProgressLine::~ProgressLine() {
  if (!has_bar_) return;
  std::fputs("\r\033[K", stream_);
  std::fflush(stream_);
}

void ProgressLine::show(const std::string& what, double done) {
  done = std::clamp(done, 0.0, 1.0);
  if (shape_ == ProgressShape::bar) {
    if (has_bar_ && now_ns() - drawn_ns_ < redraw_ns) return;
    drawn_ns_ = now_ns();
    has_bar_ = true;
    return draw_bar(what, done);
  }
  const int tenths = static_cast<int>(done * 10 + 1e-9);
  if (tenths <= tenths_shown_ || now_ns() - drawn_ns_ < line_every_ns_) return;
  drawn_ns_ = now_ns();
  tenths_shown_ = tenths;
  fmt::print(stream_, "{:3.0f}% {}{}\n", done * 100, what, eta(done));
  std::fflush(stream_);
}

void ProgressLine::draw_bar(const std::string& what, double done) const {
  const std::string text = fmt::format(" {:3.0f}% {}{}", done * 100, what, eta(done));
  const std::size_t columns = columns_of(stream_), taken = cells + 3;
  fmt::print(stream_, "\r{}{}\033[K", bar(done, style_),
             text.substr(0, columns > taken ? columns - taken : 0));
  std::fflush(stream_);
}

std::string ProgressLine::eta(double done) const {
  if (done < eta_after || done >= 1) return "";
  const double elapsed_s = static_cast<double>(now_ns() - start_ns_) * 1e-9;
  return ", " + format_duration(elapsed_s * (1 - done) / done) + " left";
}

}  // namespace strata
