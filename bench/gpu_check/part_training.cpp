#include <fmt/format.h>

#include <memory>

#include "gpu_check/parts.hpp"
#include "gpu_check/torch_side.hpp"
#include "gpu_check/training_series.hpp"

namespace strata {
namespace {

const std::string large = "large model";
constexpr double small_run_seconds_max = 25;

// Where nothing was predicted, what fits is not known: the smallest is the likeliest.
ModelShape without_predictions() { return large_shapes().back(); }

ModelCost cost_of(Check& check, const ModelShape& shape) {
  TrainingSeries series(check, shape);
  ModelCost cost{shape, {}};
  // The drive does not decide: (c) is the last, and is not run where time or room is short.
  for (Placement placement : {Placement::all_resident, Placement::state_in_ram})
    cost.step_seconds[placement] = series.predicted_step(placement);
  // The searched one is at least as good as these.
  cost.step_seconds[Placement::searched] = cost.step_seconds[Placement::all_resident];
  return cost;
}

// "no large model gets through: 3B does not fit, 1B needs 310 s of 250".
std::string why_none(const std::vector<ModelCost>& costs, const ModelRates& rates, double seconds) {
  std::string why = "no large model gets through:";
  for (const ModelCost& cost : costs)
    why += fits(cost) ? fmt::format(" {} needs {:.0f} s of {:.0f};", cost.shape.name,
                                    seconds_needed(cost, rates), seconds)
                      : fmt::format(" {} does not fit;", cost.shape.name);
  return why;
}

// No rows where there is a model: its series makes them.
std::vector<CheckRow> choose_large(Check& check, const ModelRates& rates,
                                   std::optional<ModelShape>& chosen) {
  if (!check.options().model.empty())
    chosen = shape_named(check.options().model);
  else if (check.facts.profile.empty())
    chosen = without_predictions();
  if (chosen) return {};
  std::vector<ModelCost> costs;
  for (const ModelShape& shape : large_shapes()) costs.push_back(cost_of(check, shape));
  const double seconds = check.seconds_left() - torch_seconds(check);
  chosen = choose_model(costs, rates, seconds);
  if (chosen) return {};
  return none_run(TrainingSeries::row_names(large), why_none(costs, rates, seconds));
}

void train_large(Check& check, const ModelRates& rates) {
  std::optional<ModelShape> chosen;
  check.run_part(TrainingSeries::row_names(large),
                 [&](Check& c) { return choose_large(c, rates, chosen); });
  if (chosen) TrainingSeries(check, *chosen).run(rates, {.reserved = torch_seconds(check)});
  check_torch(check, chosen.value_or(small_shape()));
}

void skip_large(Check& check, const std::string& why) {
  check.run_part(TrainingSeries::row_names(large),
                 [&](Check&) { return none_run(TrainingSeries::row_names(large), why); });
}

ModelRates train_small(Check& check, const ModelShape& shape) {
  TrainingSeries series(check, shape);
  SeriesTime time;
  if (check.has_gpu()) time.run_seconds_max = small_run_seconds_max;
  series.run({}, time);
  return series.rates_seen();
}

}  // namespace

void check_training(Check& check) {
  const bool is_quick = check.options().extent == Extent::quick;
  const bool is_small = is_quick || !check.has_gpu();
  const ModelRates rates = train_small(check, is_small ? tiny_shape() : small_shape());
  if (!check.has_gpu()) {
    skip_large(check, check.facts.why_no_gpu);
    return check_torch(check, tiny_shape());
  }
  if (!is_quick) return train_large(check, rates);
  skip_large(check, "quick");
  check_torch(check, tiny_shape());
}

}  // namespace strata
