#pragma once
// A TrainingSeries makes one model, trains it under every placement and compares the steps.
// Its files are gone when it is.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpu_check/check.hpp"
#include "gpu_check/model_shape.hpp"
#include "gpu_check/placement.hpp"
#include "gpu_check/training_figures.hpp"

namespace strata {

class TrainingSeries {
 public:
  TrainingSeries(Check& check, ModelShape shape);
  ~TrainingSeries();
  TrainingSeries(const TrainingSeries&) = delete;
  TrainingSeries& operator=(const TrainingSeries&) = delete;

  // Adds a row for the model, one per placement, and one for their equality.
  void run(const ModelRates& expected);
  // Of a placement's steps, from the model's shape alone; none: it does not fit.
  StepSeconds predicted_step(Placement placement);

  ModelRates rates_seen() const { return rates_; }
  // "3B (b) state in RAM" and so on.
  static std::vector<std::string> row_names(const std::string& model);

 private:
  std::vector<CheckRow> make_model();
  std::vector<CheckRow> train(Placement placement, const ModelRates& expected);
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
  ModelRates rates_{0, 0};
  std::vector<TrainedSteps> trained_;
};

}  // namespace strata
