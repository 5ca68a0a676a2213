#include "gpu_check/training_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <sstream>
#include <stdexcept>

namespace strata {
namespace {

constexpr std::size_t warm_up_steps = 2, steps_compared_min = 2;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// NaN is written as null.
double finite(const CheckJson& line, const char* field) {
  if (line.at(field).is_number()) return line.at(field).get<double>();
  throw std::runtime_error(
      fmt::format("{} of step {} is not finite", field, line.at("step").get<int>()));
}

void add_step(TrainedSteps& steps, const CheckJson& line) {
  const std::size_t expected = steps.losses.size() + 1;
  if (line.at("step").get<std::size_t>() != expected)
    throw std::runtime_error(fmt::format("the metrics lack step {}", expected));
  steps.losses.push_back(finite(line, "loss"));
  steps.grad_norms.push_back(finite(line, "grad_norm"));
  steps.step_seconds.push_back(finite(line, "step_seconds"));
  steps.tokens_per_s.push_back(finite(line, "tokens_per_second"));
}

CheckJson json_of(const TrainedSteps& steps) {
  return {{"losses", steps.losses},
          {"grad_norms", steps.grad_norms},
          {"step_seconds", steps.step_seconds},
          {"median_step_seconds", steps.median_step_seconds()}};
}

void add_prediction(CheckRow& row, const Prediction& predicted, double measured) {
  const double mfu = predicted.mfu * predicted.step_seconds / measured;
  const double achieved = predicted.bound_seconds / measured;
  row.told += fmt::format(
      "; MFU {:.1f}%; {:.0f}% of the bound, {:.4g} s by {}; predicted {:.4g} s ({:+.0f}%)",
      100 * mfu, 100 * achieved, predicted.bound_seconds, predicted.bound_by,
      predicted.step_seconds, 100 * (measured / predicted.step_seconds - 1));
  row.figures.update(CheckJson{{"mfu", mfu},
                               {"achieved_of_bound", achieved},
                               {"bound_seconds", predicted.bound_seconds},
                               {"bound_by", predicted.bound_by},
                               {"predicted_step_seconds", predicted.step_seconds},
                               {"predicted_mfu", predicted.mfu}});
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// "loss of step 3: 1.5 in (a) all resident, 1.5000000000000002 in (b) ..."; empty: none differs.
std::string difference(const char* what, const std::vector<double> TrainedSteps::*values,
                       const TrainedSteps& first, const TrainedSteps& other, std::size_t steps) {
  for (std::size_t i = 0; i < steps; ++i) {
    const double a = (first.*values)[i], b = (other.*values)[i];
    if (!same_bits(a, b))
      return fmt::format("{} of step {}: {:.17g} in {}, {:.17g} in {}", what, i + 1, a,
                         first.placement, b, other.placement);
  }
  return {};
}

}  // namespace

double TrainedSteps::median_step_seconds() const {
  if (step_seconds.size() <= warm_up_steps) return step_seconds.back();
  return median({step_seconds.begin() + warm_up_steps, step_seconds.end()});
}

std::optional<Prediction> prediction_in(const std::string& plan) {
  const CheckJson json = CheckJson::parse(plan);
  if (!json.contains("prediction") || json["prediction"].is_null()) return {};
  const CheckJson& p = json["prediction"];
  return Prediction{p.at("step_seconds"), p.at("bound_seconds"), p.at("tokens_per_step"),
                    p.at("mfu"), p.at("bound_by")};
}

TrainedSteps steps_in(const std::string& metrics, const std::string& placement) {
  TrainedSteps steps;
  steps.placement = placement;
  std::istringstream lines(metrics);
  for (std::string text; std::getline(lines, text);) {
    const CheckJson line = CheckJson::parse(text);
    if (line.contains("loss")) add_step(steps, line);
  }
  if (steps.losses.empty()) throw std::runtime_error("the metrics have no step");
  return steps;
}

CheckRow training_row(const std::string& part, const TrainedSteps& steps,
                      const std::optional<Prediction>& predicted) {
  const double measured = steps.median_step_seconds();
  const double tokens_per_s = steps.tokens_per_s.back() * steps.step_seconds.back() / measured;
  CheckRow row = passed(part, fmt::format("step {:.4g} s, {:.0f} tok/s", measured, tokens_per_s),
                        json_of(steps));
  row.figures["tokens_per_s"] = tokens_per_s;
  if (predicted) add_prediction(row, *predicted, measured);
  return row;
}

CheckRow equality_row(const std::string& part, const std::vector<TrainedSteps>& runs) {
  if (runs.size() < 2)
    return not_run(part, fmt::format("{} of the placements trained: nothing to compare",
                                     runs.empty() ? "none" : "one"));
  std::size_t steps = runs.front().losses.size();
  for (const TrainedSteps& run : runs) steps = std::min(steps, run.losses.size());
  if (steps < steps_compared_min)
    return failed(part, "a run has a single step, whose loss tells nothing of the update");
  for (const TrainedSteps& run : runs) {
    std::string found = difference("loss", &TrainedSteps::losses, runs.front(), run, steps);
    if (found.empty())
      found = difference("norm", &TrainedSteps::grad_norms, runs.front(), run, steps);
    if (!found.empty()) return failed(part, found);
  }
  return passed(
      part,
      fmt::format("{} placements, {} steps: bit-equal, loss {:.6g} -> {:.6g}", runs.size(), steps,
                  runs.front().losses.front(), runs.front().losses[steps - 1]),
      {{"placements", runs.size()}, {"steps", steps}});
}

}  // namespace strata
