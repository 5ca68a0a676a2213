#include "gpu_check/model_shape.hpp"

#include <algorithm>
#include <ranges>
#include <stdexcept>

namespace strata {
namespace {

constexpr double unseen_run_rate = 20e-9;

std::vector<ModelShape> all_shapes() {
  std::vector<ModelShape> shapes = large_shapes();
  shapes.push_back(small_shape());
  shapes.push_back(tiny_shape());
  return shapes;
}

}  // namespace

std::int64_t ModelShape::num_parameters() const {
  const std::int64_t attention = 2 * hidden * head_dim * (heads + kv_heads);
  const std::int64_t layer = attention + 3 * hidden * intermediate + 2 * hidden;
  return layers * layer + 2 * vocabulary * hidden + hidden;
}

const ModelShape& tiny_shape() {
  static const ModelShape shape{"3M", 256, 768, 4, 4, 2, 64, 512, 2, 128};
  return shape;
}

const ModelShape& small_shape() {
  static const ModelShape shape{"0.4B", 1024, 4096, 24, 16, 8, 64, 32768, 4, 2048};
  return shape;
}

const std::vector<ModelShape>& large_shapes() {
  static const std::vector<ModelShape> shapes{
      {"3B", 3072, 8192, 28, 24, 8, 128, 32768, 4, 2048},
      {"1B", 2048, 8192, 16, 16, 8, 128, 32768, 4, 2048},
  };
  return shapes;
}

const ModelShape& shape_named(const std::string& name) {
  static const std::vector<ModelShape> shapes = all_shapes();
  const auto found = std::ranges::find(shapes, name, &ModelShape::name);
  if (found != shapes.end()) return *found;
  std::string names;
  for (const ModelShape& shape : shapes) names += " " + shape.name;
  throw std::runtime_error("no model is named " + name + ": there are" + names);
}

std::vector<std::string> make_model_arguments(const ModelShape& shape, const std::string& folder) {
  std::vector<std::string> arguments{"make-model", folder, "--preset", "tiny", "--tied", "false"};
  const auto add = [&](const char* option, std::int64_t value) {
    arguments.insert(arguments.end(), {option, std::to_string(value)});
  };
  add("--hidden-size", shape.hidden);
  add("--intermediate-size", shape.intermediate);
  add("--layers", shape.layers);
  add("--heads", shape.heads);
  add("--kv-heads", shape.kv_heads);
  add("--head-dim", shape.head_dim);
  add("--vocab-size", shape.vocabulary);
  add("--max-positions", std::max<std::int64_t>(shape.row_tokens, 2048));
  return arguments;
}

double ModelRates::run_rate(Placement placement) const {
  const auto own = run_seconds_per_parameter.find(placement);
  if (own != run_seconds_per_parameter.end()) return own->second;
  if (run_seconds_per_parameter.empty()) return unseen_run_rate;
  return std::ranges::max(run_seconds_per_parameter | std::views::values);
}

double run_seconds(const ModelShape& shape, double rate, double step_seconds, int steps) {
  return start_seconds + static_cast<double>(shape.num_parameters()) * rate + steps * step_seconds;
}

int steps_within(const ModelShape& shape, double rate, double step_seconds, double seconds) {
  const double left = seconds - run_seconds(shape, rate, step_seconds, 0);
  const double steps = std::clamp(left / step_seconds, 0.0, double{steps_wanted});
  return static_cast<int>(steps);
}

bool fits(const ModelCost& cost) {
  return std::ranges::all_of(cost.step_seconds | std::views::values,
                             [](const StepSeconds& step) { return step.has_value(); });
}

double seconds_needed(const ModelCost& cost, const ModelRates& rates) {
  double needed =
      static_cast<double>(cost.shape.num_parameters()) * rates.make_seconds_per_parameter;
  for (const auto& [placement, step] : cost.step_seconds)
    if (step) needed += run_seconds(cost.shape, rates.run_rate(placement), *step, steps_min);
  return needed;
}

std::optional<ModelShape> choose_model(const std::vector<ModelCost>& from_large_to_small,
                                       const ModelRates& rates, double seconds) {
  for (const ModelCost& cost : from_large_to_small)
    if (fits(cost) && seconds_needed(cost, rates) <= seconds) return cost.shape;
  return {};
}

}  // namespace strata
