#include "cli/command_bench_adam_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "strata/core/digits.hpp"
#include "strata/core/text_table.hpp"

namespace strata {
namespace {

const PassResult* largest_of(const PassReport& report, const std::string& pass) {
  const PassResult* largest = nullptr;
  const auto size = [](const PassResult& result) {
    return std::tuple(result.threads, result.count);
  };
  for (const PassResult& result : report.results)
    if (result.pass == pass && (largest == nullptr || size(result) > size(*largest)))
      largest = &result;
  return largest;
}

double seconds_per_parameter(const PassResult& result) {
  return result.seconds.median() / static_cast<double>(result.count);
}

int most_threads(const PassReport& report) {
  int most = 0;
  for (const PassResult& result : report.results) most = std::max(most, result.threads);
  return most;
}

bool is_of_a_config(const AdamLayout& layout, const std::vector<UpdateDemand>& demands) {
  return std::ranges::any_of(demands, [&](const UpdateDemand& d) { return d.layout == layout; });
}

std::vector<TextTable::Column> answer_columns(const std::vector<UpdateDemand>& demands) {
  constexpr auto right = TextTable::Align::right;
  std::vector<TextTable::Column> columns{{"update"}, {"moments"}, {"state B/param", right}};
  for (const UpdateDemand& demand : demands) {
    columns.push_back({demand.whose + " state GB", right});
    columns.push_back({"s/step", right});
  }
  columns.push_back({""});
  return columns;
}

std::vector<std::string> answer_row(const PassReport& report, const AdamLayout& layout,
                                    const std::vector<UpdateDemand>& demands) {
  std::vector<std::string> cells{update_pass_name(layout),
                                 layout.moments == DType::f32 ? "exact" : "approximate",
                                 three_digits(state_bytes(layout))};
  for (const UpdateDemand& demand : demands) {
    const auto seconds = step_seconds(report, layout, demand.parameters);
    cells.push_back(three_digits(state_bytes(layout) * demand.parameters / 1e9));
    cells.push_back(seconds ? three_digits(*seconds) : "-");
  }
  cells.emplace_back(is_of_a_config(layout, demands) ? "<- the config's" : "");
  return cells;
}

}  // namespace

std::optional<double> step_seconds(const PassReport& report, const AdamLayout& layout,
                                   double parameters) {
  const PassResult* norm = largest_of(report, norm_pass_name(layout.gradient));
  const PassResult* update = largest_of(report, update_pass_name(layout));
  if (norm == nullptr || update == nullptr) return std::nullopt;
  return parameters * (seconds_per_parameter(*norm) + seconds_per_parameter(*update));
}

std::string format_adam_answer(const PassReport& report, const std::vector<AdamLayout>& layouts,
                               const std::vector<UpdateDemand>& demands) {
  TextTable table(answer_columns(demands));
  for (const AdamLayout& layout : layouts) table.add_row(answer_row(report, layout, demands));
  return fmt::format(
      "One optimizer step on the CPU with {} threads, the norm of the gradient and the update:\n\n"
      "{}\nState in RAM; on NVMe it also has to be read and written (strata bench nvme).\n",
      most_threads(report), table.text());
}

}  // namespace strata
