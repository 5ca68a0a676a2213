#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "strata/measure/doctor.hpp"

namespace strata {
namespace {

constexpr std::size_t columns_max = 100, health_columns = 10, topic_columns_max = 14;
constexpr std::string_view arrow = "-> ";

// Words in lines of at most `columns`; a longer word has its own line.
std::vector<std::string> wrapped(const std::string& text, std::size_t columns) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.empty() && lines.back().size() + 1 + word.size() <= columns)
      lines.back().append(1, ' ').append(word);
    else
      lines.push_back(word);
  }
  return lines;
}

std::string painted(const std::string& text, Health health, Paint paint) {
  constexpr std::array<std::string_view, 3> codes = {"\x1b[32m", "\x1b[33m", "\x1b[31m"};
  if (paint == Paint::none) return text;
  return fmt::format("{}{}\x1b[0m", codes[static_cast<std::size_t>(health)], text);
}

class FindingsTable {
 public:
  FindingsTable(const std::vector<Finding>& findings, Paint paint) : paint_(paint) {
    for (const Finding& finding : findings)
      topic_columns_ = std::max(topic_columns_, finding.topic.size() + 2);
    topic_columns_ = std::min(topic_columns_, topic_columns_max);
  }

  void add(const Finding& finding) {
    add_lines(lead(finding), wrapped(finding.facts, columns_max - indent()));
    std::istringstream advices(finding.advice);
    for (std::string advice; std::getline(advices, advice);) add_advice(advice);
  }
  std::string text() const { return text_; }

 private:
  std::size_t indent() const { return health_columns + topic_columns_; }

  // A topic that is too long, as with a path, has a line of its own.
  std::string lead(const Finding& finding) {
    const std::string health(health_name(finding.health));
    std::string text = painted(health, finding.health, paint_) +
                       std::string(health_columns - health.size(), ' ') + finding.topic;
    if (finding.topic.size() + 2 <= topic_columns_)
      return text + std::string(topic_columns_ - finding.topic.size(), ' ');
    text_ += text + '\n';
    return std::string(indent(), ' ');
  }

  void add_advice(const std::string& advice) {
    add_lines(std::string(indent(), ' ') + std::string(arrow),
              wrapped(advice, columns_max - indent() - arrow.size()), arrow.size());
  }

  void add_lines(const std::string& first, const std::vector<std::string>& lines,
                 std::size_t hanging = 0) {
    for (std::size_t i = 0; i < lines.size(); ++i)
      text_ += (i == 0 ? first : std::string(indent() + hanging, ' ')) + lines[i] + '\n';
    if (lines.empty()) text_ += first + '\n';
  }

  Paint paint_;
  std::size_t topic_columns_ = 0;
  std::string text_;
};

std::string summary(const std::vector<Finding>& findings) {
  std::array<int, 3> counts{};
  for (const Finding& finding : findings) ++counts[static_cast<std::size_t>(finding.health)];
  return fmt::format("{} ok, {} degraded (works, at a cost), {} broken (a run would fail)\n",
                     counts[0], counts[1], counts[2]);
}

}  // namespace

std::string_view health_name(Health health) {
  constexpr std::array<std::string_view, 3> names = {"ok", "degraded", "broken"};
  return names[static_cast<std::size_t>(health)];
}

std::string format_findings(const std::vector<Finding>& findings, Paint paint) {
  FindingsTable table(findings, paint);
  for (const Finding& finding : findings) table.add(finding);
  return table.text() + '\n' + summary(findings);
}

std::string findings_to_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings)
    list.push_back({{"topic", finding.topic},
                    {"health", health_name(finding.health)},
                    {"facts", finding.facts},
                    {"advice", finding.advice}});
  nlohmann::ordered_json report = {{"format", "strata-doctor"},
                                   {"schema_version", 1},
                                   {"health", health_name(overall_health(findings))},
                                   {"findings", std::move(list)}};
  return report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace strata
