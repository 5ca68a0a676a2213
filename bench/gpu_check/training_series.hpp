#pragma once
// A TrainingSeries makes one model, trains it under every placement and compares the steps.
// Its files are gone when it is.

#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gpu_check/check.hpp"
#include "gpu_check/model_shape.hpp"
#include "gpu_check/placement.hpp"
#include "gpu_check/training_figures.hpp"

namespace strata {

// What a series may use of the time that is left.
struct SeriesTime {
  double run_seconds_max = std::numeric_limits<double>::infinity();  // of one placement
  double reserved = 0;                                               // for what comes after it
};

class TrainingSeries {
 public:
  TrainingSeries(Check& check, ModelShape shape);
  ~TrainingSeries();
  TrainingSeries(const TrainingSeries&) = delete;
  TrainingSeries& operator=(const TrainingSeries&) = delete;

  // Adds a row for the model, one per placement, and one for their equality.
  void run(const ModelRates& expected, const SeriesTime& time);
  // Of a placement's steps, from the model's shape alone; none: it does not fit.
  StepSeconds predicted_step(Placement placement);

  ModelRates rates_seen() const { return rates_; }
  // "3B (b) state in RAM" and so on.
  static std::vector<std::string> row_names(const std::string& model);

 private:
  std::vector<CheckRow> make_model();
  std::vector<CheckRow> train(Placement placement);
  double run_rate(Placement placement) const;
  double seconds_allowed() const;
  ProgramEnd run_training(Placement placement, int steps, double seconds_max);
  std::vector<CheckRow> read_training(Placement placement, const ProgramEnd& end,
                                      const std::optional<Prediction>& predicted);
  RunFiles files(Placement placement) const;
  std::filesystem::path write_config(Placement placement, int steps) const;
  std::optional<Prediction> predict(Placement placement);
  std::string name(Placement placement) const;

  Check& check_;
  ModelShape shape_;
  std::string model_;  // as rows call it
  std::filesystem::path folder_, fast_folder_;
  std::string no_plan_;  // why the last plan was refused
  bool has_model_ = false;
  ModelRates expected_, rates_;  // of another model, and of this one
  SeriesTime time_;
  std::vector<TrainedSteps> trained_;
};

}  // namespace strata
