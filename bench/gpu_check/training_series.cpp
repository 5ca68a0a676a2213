#include "gpu_check/training_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <system_error>

#include "gpu_check/export_folder.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr double plan_seconds_max = 30, run_seconds_min = 60;
// A run is ended when it takes so many times longer than expected and a share of what is left:
// others want to run as well.
constexpr double patience = 3, share_of_left = 0.4;
// Of the time that a run may take: a prediction that is a little off must not end it.
constexpr double planned_share = 0.8;

// What no profile tells.
double unpredicted_step_seconds(const ModelShape& shape) {
  return 2e-9 * static_cast<double>(shape.num_parameters());
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// The lines in which a run tells of each tier's memory.
CheckJson memory_lines(const std::string& output) {
  CheckJson lines = CheckJson::array();
  for (std::size_t at = output.find("\nmemory "); at != std::string::npos;
       at = output.find("\nmemory ", at + 1))
    lines.push_back(output.substr(at + 1, output.find('\n', at + 1) - at - 1));
  return lines;
}

bool says(const ProgramEnd& end, const char* text) {
  return end.output_tail.find(text) != std::string::npos;
}

// Why a plan was refused that another machine would get; empty: something is wrong.
std::string what_is_missing(const ProgramEnd& end) {
  if (says(end, "strata: out of memory")) return "does not fit";
  return says(end, "has no drives") ? "the drive was not measured" : "";
}

// The next run wants the room. What cannot go is no reason to stop.
void empty_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  fs::create_directories(folder, ignored);
}

}  // namespace

TrainingSeries::TrainingSeries(Check& check, ModelShape shape)
    : check_(check),
      shape_(std::move(shape)),
      model_(shape_.name + (check.has_gpu() ? "" : " on the host")),
      folder_(check.scratch("model-" + shape_.name)),
      fast_folder_(export_folder(shape_, check.options().memory, folder_)) {
  fs::create_directories(folder_);
}

TrainingSeries::~TrainingSeries() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  fs::remove_all(fast_folder_, ignored);
}

std::string TrainingSeries::name(Placement placement) const {
  return model_ + " " + title(placement);
}

std::vector<std::string> TrainingSeries::row_names(const std::string& model) {
  std::vector<std::string> names{model + " made"};
  for (Placement placement : placements()) names.push_back(model + " " + title(placement));
  names.push_back(model + " losses");
  return names;
}

RunFiles TrainingSeries::files(Placement placement) const {
  const fs::path output = folder_ / fmt::format("run-{}", static_cast<int>(placement));
  return {folder_ / "model", folder_ / "shards" / "train.tok", output, fast_folder_ / "export",
          check_.scratch("nvme")};
}

fs::path TrainingSeries::write_config(Placement placement, int steps) const {
  const fs::path config = folder_ / fmt::format("config-{}.yaml", static_cast<int>(placement));
  write_file(config, train_config(placement, shape_, files(placement), steps,
                                  check_.has_gpu() ? "gpu" : ""));
  return config;
}

std::optional<Prediction> TrainingSeries::predict(Placement placement) {
  no_plan_.clear();
  if (check_.facts.profile.empty()) return {};
  const fs::path plan = folder_ / "plan.json", config = write_config(placement, steps_wanted);
  const ProgramEnd end =
      check_.run("strata", {"plan", config, "--machine", check_.facts.profile, "--json", plan},
                 plan_seconds_max);
  if (end.succeeded()) return prediction_in(read_file(plan));
  const std::string missing = what_is_missing(end);
  if (missing.empty()) throw std::runtime_error(fmt::format("strata plan: {}", complaint(end)));
  no_plan_ = missing + ": " + check_.last_output();
  return {};
}

StepSeconds TrainingSeries::predicted_step(Placement placement) {
  if (!fs::exists(files(placement).model)) {
    auto arguments = make_model_arguments(shape_, files(placement).model);
    arguments.push_back("--shape-only");
    const ProgramEnd end = check_.run("strata", arguments, plan_seconds_max);
    if (!end.succeeded()) throw std::runtime_error("strata make-model: " + complaint(end));
  }
  const auto predicted = predict(placement);
  return predicted ? StepSeconds(predicted->step_seconds) : std::nullopt;
}

std::vector<CheckRow> TrainingSeries::make_model() {
  const RunFiles all = files(placements().front());
  const std::string row = row_names(model_).front();
  fs::remove_all(all.model);  // the shape alone
  fs::create_directories(all.nvme);
  const ProgramEnd made = check_.run("strata", make_model_arguments(shape_, all.model),
                                     (check_.seconds_left() - time_.reserved) / 2);
  if (!made.succeeded()) return {failed(row, complaint(made), made.output_tail)};
  write_file(folder_ / "text.txt", training_text(shape_, steps_wanted));
  const ProgramEnd prepared = check_.run(
      "strata", {"prepare", "--input", folder_ / "text.txt", "--output", all.shard.parent_path()},
      plan_seconds_max);
  if (!prepared.succeeded()) return {failed(row, complaint(prepared), prepared.output_tail)};
  has_model_ = true;
  const auto parameters = static_cast<double>(shape_.num_parameters());
  rates_.make_seconds_per_parameter = made.seconds / parameters;
  return {passed(row,
                 fmt::format("{:.4g} million parameters in {:.1f} s, {} x {} tokens a step",
                             parameters / 1e6, made.seconds, shape_.rows, shape_.row_tokens),
                 {{"parameters", shape_.num_parameters()},
                  {"tokens_per_step", shape_.rows * shape_.row_tokens},
                  {"layers", shape_.layers},
                  {"hidden", shape_.hidden}})};
}

ProgramEnd TrainingSeries::run_training(Placement placement, int steps, double seconds_max) {
  std::vector<std::string> arguments{"train", write_config(placement, steps)};
  if (!check_.facts.profile.empty())
    arguments.insert(arguments.end(), {"--machine", check_.facts.profile});
  const ProgramEnd end = check_.run("strata", arguments, seconds_max);
  std::error_code ignored;
  fs::remove_all(files(placement).exported, ignored);
  empty_folder(files(placement).nvme);
  return end;
}

std::vector<CheckRow> TrainingSeries::read_training(Placement placement, const ProgramEnd& end,
                                                    const std::optional<Prediction>& predicted) {
  if (!end.succeeded()) return {failed(name(placement), complaint(end), end.output_tail)};
  const TrainedSteps steps =
      steps_in(read_file(files(placement).output / "metrics.jsonl"), title(placement));
  CheckRow row = training_row(name(placement), steps, predicted);
  row.figures["memory"] = memory_lines(check_.last_output());
  const double beside = end.seconds - sum(steps.step_seconds) - start_seconds;
  rates_.run_seconds_per_parameter[placement] =
      std::max(beside, 0.0) / static_cast<double>(shape_.num_parameters());
  trained_.push_back(steps);
  return {row};
}

// As another model has shown for this placement, else as this one has for others.
double TrainingSeries::run_rate(Placement placement) const {
  const bool is_expected = expected_.run_seconds_per_parameter.contains(placement);
  const bool is_seen = !rates_.run_seconds_per_parameter.empty();
  return is_seen && !is_expected ? rates_.run_rate(placement) : expected_.run_rate(placement);
}

double TrainingSeries::seconds_allowed() const {
  return std::min(check_.seconds_left() - time_.reserved, time_.run_seconds_max);
}

std::vector<CheckRow> TrainingSeries::train(Placement placement) {
  if (!has_model_) return {not_run(name(placement), "there is no model")};
  if (placement == Placement::searched && check_.facts.profile.empty())
    return {not_run(name(placement), "there is no machine profile to search with")};
  const auto predicted = predict(placement);
  if (!no_plan_.empty()) return {not_run(name(placement), no_plan_)};
  const double step = predicted ? predicted->step_seconds : unpredicted_step_seconds(shape_);
  const double rate = run_rate(placement), allowed = seconds_allowed();
  const double planned = planned_share * allowed;
  const int steps = steps_within(shape_, rate, step, planned);
  if (steps < steps_min)
    return {not_run(name(placement),
                    fmt::format("it may take {:.0f} s, and {} steps would take {:.0f} s",
                                std::max(planned, 0.0), steps_min,
                                run_seconds(shape_, rate, step, steps_min)))};
  const double patient = std::max({patience * run_seconds(shape_, rate, step, steps),
                                   share_of_left * check_.seconds_left(), run_seconds_min});
  const ProgramEnd end = run_training(placement, steps, std::min(patient, allowed));
  return read_training(placement, end, predicted);
}

void TrainingSeries::run(const ModelRates& expected, const SeriesTime& time) {
  expected_ = expected;
  time_ = time;
  const std::vector<std::string> names = row_names(model_);
  check_.run_part({names.front()}, [&](Check&) { return make_model(); });
  for (Placement placement : placements())
    check_.run_part({name(placement)}, [&](Check&) { return train(placement); });
  check_.run_part({names.back()}, [&](Check&) {
    return std::vector<CheckRow>{equality_row(names.back(), trained_)};
  });
}

}  // namespace strata
