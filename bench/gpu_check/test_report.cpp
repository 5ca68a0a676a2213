#include "gpu_check/test_report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace strata {
namespace {

struct Tally {
  int passed = 0, skipped = 0;
  std::vector<std::string> failed;  // names
  std::string failure;              // what the first of them said
  double seconds = 0;
  CheckJson suites = CheckJson::object();
};

bool has_a_word(const std::string& name, const TestGroup& group) {
  return group.words.empty() || std::ranges::any_of(group.words, [&](const std::string& word) {
           return name.find(word) != std::string::npos;
         });
}

// "*Update*.*:*Adam*.*": patterns of suites.
std::string patterns(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "*" : ":*") + word + "*.*";
  return text;
}

std::size_t group_of(const std::string& suite, const std::vector<TestGroup>& groups) {
  const auto found = std::ranges::find_if(
      groups, [&](const TestGroup& group) { return has_a_word(suite, group); });
  return static_cast<std::size_t>(std::min(found, groups.end() - 1) - groups.begin());
}

std::string first_message(const CheckJson& failures) {
  return failures.empty() ? "" : failures.front().value("failure", "");
}

// The report lacks it; the program prints "file:line: Skipped" and, on a line of its own, why.
std::string first_skip_reason(const std::string& printed) {
  const std::string mark = ": Skipped\n";
  const std::size_t found = printed.find(mark);
  if (found == std::string::npos) return {};
  const std::size_t begin = found + mark.size();
  return printed.substr(begin, printed.find('\n', begin) - begin);
}

void add_test(Tally& tally, CheckJson& counts, const std::string& suite, const CheckJson& test) {
  const std::string result = test.at("result");
  if (test.contains("failures")) {
    if (tally.failed.empty()) tally.failure = first_message(test["failures"]);
    tally.failed.push_back(suite + "." + test.at("name").get<std::string>());
    counts["failed"] = counts["failed"].get<int>() + 1;
  } else if (result == "COMPLETED") {
    ++tally.passed;
    counts["passed"] = counts["passed"].get<int>() + 1;
  } else if (result == "SKIPPED") {
    ++tally.skipped;
    counts["not_run"] = counts["not_run"].get<int>() + 1;
  }
}

void add_suite(Tally& tally, const CheckJson& suite) {
  const std::string name = suite.at("name");
  CheckJson counts{{"passed", 0}, {"failed", 0}, {"not_run", 0}};
  for (const CheckJson& test : suite.at("testsuite")) add_test(tally, counts, name, test);
  tally.seconds += std::stod(suite.at("time").get<std::string>());
  tally.suites[name] = counts;
}

std::string told(const Tally& tally, const std::string& skip_reason) {
  if (!tally.failed.empty())
    return fmt::format("{} of {} failed, the first is {}", tally.failed.size(),
                       tally.failed.size() + tally.passed, tally.failed.front());
  if (tally.passed == 0 && tally.skipped == 0) return "the program has no such tests";
  if (tally.passed == 0)
    return fmt::format("{} skipped: {}", tally.skipped,
                       skip_reason.empty() ? "no reason is told" : skip_reason);
  return fmt::format("{} passed{}", tally.passed,
                     tally.skipped == 0 ? "" : fmt::format(", {} skipped", tally.skipped));
}

CheckRow row_of(const Tally& tally, const std::string& part, const std::string& skip_reason) {
  CheckRow row;
  row.part = part;
  row.told = told(tally, skip_reason);
  row.seconds = tally.seconds;
  row.figures = {{"passed", tally.passed},
                 {"failed", tally.failed.size()},
                 {"skipped", tally.skipped},
                 {"failed_tests", tally.failed},
                 {"suites", tally.suites}};
  row.output_tail = tally.failure;
  row.outcome = !tally.failed.empty() ? Outcome::fail
                : tally.passed > 0    ? Outcome::pass
                                      : Outcome::not_run;
  return row;
}

}  // namespace

std::string gtest_filter(const TestGroup& group, const std::vector<TestGroup>& groups) {
  if (!group.words.empty()) return patterns(group.words);
  std::vector<std::string> others;
  for (const TestGroup& other : groups)
    others.insert(others.end(), other.words.begin(), other.words.end());
  return others.empty() ? "*" : "*-" + patterns(others);
}

std::vector<CheckRow> test_rows(const std::string& report, const std::string& printed,
                                const std::vector<TestGroup>& groups) {
  const CheckJson json = CheckJson::parse(report);
  std::vector<Tally> tallies(groups.size());
  for (const CheckJson& suite : json.at("testsuites"))
    add_suite(tallies[group_of(suite.at("name"), groups)], suite);
  const std::string reason = first_skip_reason(printed);
  std::vector<CheckRow> rows;
  for (std::size_t i = 0; i < groups.size(); ++i)
    rows.push_back(row_of(tallies[i], groups[i].part, reason));
  return rows;
}

}  // namespace strata
