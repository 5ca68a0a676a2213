#include "gpu_check/check_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace strata {
namespace {

constexpr std::size_t told_column = 50, columns = 120;

const char* key_of(Outcome outcome) { return outcome == Outcome::fail ? "fail" : name_of(outcome); }

// In lines that fit beside the columns before it; a word longer than a line has one of its own.
std::string wrapped(const std::string& text) {
  std::string lines, line, word;
  for (std::istringstream words(text); words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > columns - told_column) {
      lines += line + "\n" + std::string(told_column, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return lines + line;
}

CheckJson json_of(const CheckRow& row) {
  CheckJson json{{"part", row.part},
                 {"result", key_of(row.outcome)},
                 {"told", row.told},
                 {"seconds", row.seconds},
                 {"figures", row.figures}};
  if (!row.output_tail.empty()) json["output_tail"] = row.output_tail;
  return json;
}

}  // namespace

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      return "pass";
    case Outcome::fail:
      return "FAIL";
    case Outcome::not_run:
      return "not run";
  }
  return "";
}

int count(const std::vector<CheckRow>& rows, Outcome outcome) {
  return static_cast<int>(std::ranges::count(rows, outcome, &CheckRow::outcome));
}

std::string format_row(const CheckRow& row) {
  const std::string seconds =
      row.outcome == Outcome::not_run ? "-" : fmt::format("{:.1f}", row.seconds);
  return fmt::format("{:<32} {:<7} {:>7}  {}\n", row.part, name_of(row.outcome), seconds,
                     wrapped(row.told));
}

std::string format_table(const CheckHead& head, const std::vector<CheckRow>& rows) {
  std::string text = fmt::format("{:<32} {:<7} {:>7}  {}\n", "part", "result", "seconds", "");
  for (const CheckRow& row : rows) text += format_row(row);
  return text + fmt::format("\n{} passed, {} failed, {} not run in {:.0f} s\n",
                            count(rows, Outcome::pass), count(rows, Outcome::fail),
                            count(rows, Outcome::not_run), head.seconds);
}

std::string format_json(const CheckHead& head, const std::vector<CheckRow>& rows) {
  CheckJson json{{"format", "strata-gpu-check"},
                 {"schema_version", 1},
                 {"commit", head.commit},
                 {"started_at", head.started_at},
                 {"gpu", head.gpu},
                 {"seconds", head.seconds},
                 {"budget_seconds", head.budget_seconds},
                 {"passed", count(rows, Outcome::pass)},
                 {"failed", count(rows, Outcome::fail)},
                 {"not_run", count(rows, Outcome::not_run)},
                 {"parts", CheckJson::array()}};
  for (const CheckRow& row : rows) json["parts"].push_back(json_of(row));
  return json.dump(2, ' ', false, CheckJson::error_handler_t::replace) + "\n";
}

}  // namespace strata
