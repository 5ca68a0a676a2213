#pragma once
// A CheckRow is what a part of the check came to: a line of the table, an object of the JSON.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace strata {

using CheckJson = nlohmann::ordered_json;

enum class Outcome { pass, fail, not_run };

struct CheckRow {
  std::string part;
  Outcome outcome = Outcome::not_run;
  std::string told;  // the figures of a part that passed, else why it did not
  double seconds = 0;
  CheckJson figures = CheckJson::object();
  std::string output_tail;  // what a failed part said last
};

inline CheckRow passed(std::string part, std::string told, CheckJson figures) {
  return {std::move(part), Outcome::pass, std::move(told), 0, std::move(figures), {}};
}
inline CheckRow failed(std::string part, std::string why, std::string output_tail = {}) {
  return {std::move(part),     Outcome::fail,         std::move(why), 0,
          CheckJson::object(), std::move(output_tail)};
}
inline CheckRow not_run(std::string part, std::string why) {
  return {std::move(part), Outcome::not_run, std::move(why), 0, CheckJson::object(), {}};
}
inline std::vector<CheckRow> none_run(const std::vector<std::string>& parts,
                                      const std::string& why) {
  std::vector<CheckRow> rows;
  for (const std::string& part : parts) rows.push_back(not_run(part, why));
  return rows;
}

}  // namespace strata
