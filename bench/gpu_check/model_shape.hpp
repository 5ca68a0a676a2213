#pragma once
// Models that the check trains, all Llama-shaped, and which of them fits the time that is left.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace strata {

struct ModelShape {
  std::string name;
  std::int64_t hidden = 0, intermediate = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0,
               vocabulary = 0;
  std::int64_t rows = 0, row_tokens = 0;  // of a micro-batch

  std::int64_t num_parameters() const;
};

// Of seconds, and alike in layout to the large ones.
const ModelShape& tiny_shape();
// What goes before the large one: it shows how fast this machine makes and loads models.
const ModelShape& small_shape();
// From large to small.
const std::vector<ModelShape>& large_shapes();
// Throws std::runtime_error that names those there are.
const ModelShape& shape_named(const std::string& name);

std::vector<std::string> make_model_arguments(const ModelShape& shape, const std::string& folder);

enum class Placement;

// What a machine needs beside the steps themselves, as seen with another model.
struct ModelRates {
  double make_seconds_per_parameter = 15e-9;
  std::map<Placement, double> run_seconds_per_parameter;  // to load, and to export

  // Where the placement has not been seen, the longest of the others.
  double run_rate(Placement placement) const;
};

// Of every run, however small the model: the driver and its libraries are loaded.
constexpr double start_seconds = 3;

// How long the steps of a run take; none: it does not fit the machine.
using StepSeconds = std::optional<double>;

struct ModelCost {
  ModelShape shape;
  // Of the placements that decide; none: it does not fit.
  std::map<Placement, StepSeconds> step_seconds;
};

constexpr int steps_wanted = 6, steps_min = 3;

// Seconds of one run, whose rate is seconds per parameter.
double run_seconds(const ModelShape& shape, double rate, double step_seconds, int steps);
// As many steps as the time allows; fewer than steps_min: it is not worth beginning.
int steps_within(const ModelShape& shape, double rate, double step_seconds, double seconds);
bool fits(const ModelCost& cost);
// To make it and to take steps_min steps in each of these placements that fits.
double seconds_needed(const ModelCost& cost, const ModelRates& rates);
// The first that fits in all of these placements and needs no more time; none: no model does.
std::optional<ModelShape> choose_model(const std::vector<ModelCost>& from_large_to_small,
                                       const ModelRates& rates, double seconds);

}  // namespace strata
