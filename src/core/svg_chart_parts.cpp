#include "svg_chart_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace strata::svg {
namespace {

constexpr double left_margin = 74, right_margin = 24, plot_height = 250;
constexpr double title_height = 26, legend_height = 20, swatch = 12;
constexpr double pixels_per_character = 6.7;

int sequence_bytes(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 0;
}

// Overlong forms, surrogates, the two non-characters and what lies beyond Unicode.
bool is_forbidden(unsigned char first, unsigned char second, unsigned char third) {
  return (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
         (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f) ||
         (first == 0xef && second == 0xbf && third > 0xbd);
}

// Bytes of the character that begins `text`; 0 when it is none that UTF-8 and XML allow.
std::size_t character_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0);
  };
  if (at(0) < 0x20 || at(0) == 0x7f) return 0;
  const int bytes = sequence_bytes(at(0));
  for (int i = 1; i < bytes; ++i)
    if ((at(static_cast<std::size_t>(i)) & 0xc0) != 0x80) return 0;
  return bytes == 0 || is_forbidden(at(0), at(1), at(2)) ? 0 : static_cast<std::size_t>(bytes);
}

std::string_view entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

std::string_view anchor_name(Anchor anchor) {
  switch (anchor) {
    case Anchor::start:
      return "start";
    case Anchor::middle:
      return "middle";
    case Anchor::end:
      return "end";
  }
  return "start";
}

// Beyond, squares and powers of ten leave the range of doubles.
bool is_drawable(double size) { return size == 0 || (size > 1e-90 && size < 1e90); }

// The smallest of 1, 2, 5 times a power of ten that is at least `value`.
double nice_step(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

}  // namespace

Ticks nice_ticks(double low, double high, int num_max) {
  const double size = std::max(std::abs(low), std::abs(high));
  if (!is_drawable(size)) low = 0, high = 1;
  // A range that is a point, or next to one: its ticks could not be told apart.
  if (!(high - low > 1e-9 * size)) high = low + (low == 0 ? 1 : std::abs(low));
  const double step = nice_step((high - low) / std::max(1, num_max));
  Ticks ticks;
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last; ++i) ticks.values.push_back(i * step);
  ticks.low = ticks.values.front();
  ticks.high = ticks.values.back();
  ticks.decimals = std::clamp(-static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 12);
  return ticks;
}

std::string escape(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const std::string_view markup = entity(text[0]);
    if (bytes == 0)
      escaped += '?';
    else
      escaped += markup.empty() ? text.substr(0, bytes) : markup;
    text.remove_prefix(std::max<std::size_t>(1, bytes));
  }
  return escaped;
}

std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

double text_width(std::string_view text) {
  const auto characters = std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
  return static_cast<double>(characters) * pixels_per_character;
}

std::string label(double x, double y, Anchor anchor, std::string_view text,
                  std::string_view css_class) {
  const std::string class_text = css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class);
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\"{}>{}</text>\n", number(x),
                     number(y), anchor_name(anchor), class_text, escape(text));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  return fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n", number(x1),
                     number(y1), number(x2), number(y2), css_class);
}

std::string shortened(const std::string& text, double width) {
  if (text_width(text) <= width) return text;
  const auto kept = static_cast<std::size_t>(std::max(1.0, width / pixels_per_character - 3));
  return kept >= text.size() ? text : "..." + text.substr(text.size() - kept);
}

Part header(const std::string& title, const std::vector<std::string>& names) {
  Part part{label(16, 18, Anchor::start, title, "title"), title_height};
  double x = 16;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double width = swatch + 6 + text_width(names[i]) + 18;
    if (x + width > page_width && x > 16) x = 16, part.height += legend_height;
    const double y = part.height + 4;
    part.text += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"s{}\"{}/>\n", number(x),
        number(y), swatch, swatch, i % num_colors, i >= num_colors ? " fill-opacity=\"0.35\"" : "");
    part.text += label(x + swatch + 6, y + 10, Anchor::start, names[i]);
    x += width;
  }
  part.height += names.empty() ? 4 : legend_height + 8;
  return part;
}

Frame make_frame(double top, const Ticks& x, const Ticks& y) {
  // Room above for the top label.
  return {left_margin, top + 8, page_width - left_margin - right_margin, plot_height, x, y};
}

std::string draw_y_axis(const Frame& frame, const std::string& text) {
  std::string drawn;
  for (const double tick : frame.y.values) {
    const double y = frame.py(tick);
    drawn += line(frame.left, y, frame.left + frame.width, y, tick == 0 ? "axis" : "grid");
    drawn += label(frame.left - 8, y + 4, Anchor::end,
                   fmt::format("{:.{}f}", tick, frame.y.decimals), "faint");
  }
  return drawn + fmt::format(
                     "<text transform=\"translate(18 {}) rotate(-90)\" "
                     "text-anchor=\"middle\">{}</text>\n",
                     number(frame.top + frame.height / 2), escape(text));
}

std::string draw_x_axis(const Frame& frame, const std::string& text) {
  std::string drawn;
  for (const double tick : frame.x.values) {
    const double x = frame.px(tick);
    drawn += line(x, frame.bottom(), x, frame.bottom() + 5, "axis");
    drawn += label(x, frame.bottom() + 19, Anchor::middle,
                   fmt::format("{:.{}f}", tick, frame.x.decimals), "faint");
  }
  drawn += line(frame.left, frame.bottom(), frame.left + frame.width, frame.bottom(), "axis");
  return drawn + label(frame.left + frame.width / 2, frame.bottom() + 38, Anchor::middle, text);
}

}  // namespace strata::svg
