#pragma once
// How far a long command is: a bar that redraws itself on a terminal, now and then a plain line
// elsewhere. Thread contract: one thread.

#include <cstdint>
#include <cstdio>
#include <string>

#include "strata/telemetry/progress.hpp"

namespace strata {

enum class ProgressShape : std::uint8_t { lines, bar };
ProgressShape progress_shape(std::FILE* stream);  // bar on a terminal that can redraw a line

class ProgressLine {
 public:
  // Lines come no sooner than so many seconds after the start or the line before.
  ProgressLine(std::FILE* stream, ProgressShape shape, Style style, double line_every_s = 0);
  ~ProgressLine();  // Takes the bar away.
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `done`: 0 to 1. May be called often: it draws ten times a second at most, lines every 10%.
  void show(const std::string& what, double done);

 private:
  void draw_bar(const std::string& what, double done) const;
  std::string eta(double done) const;

  std::FILE* stream_;
  ProgressShape shape_;
  Style style_;
  const std::int64_t line_every_ns_;
  std::int64_t start_ns_ = 0, drawn_ns_ = 0;
  int tenths_shown_ = -1;
  bool has_bar_ = false;
};

}  // namespace strata
