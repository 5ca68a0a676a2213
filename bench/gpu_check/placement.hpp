#pragma once
// Where a training run of the check keeps its state, as a config for `strata train`.

#include <filesystem>
#include <string>
#include <vector>

#include "gpu_check/model_shape.hpp"

namespace strata {

enum class Placement { all_resident, state_in_ram, state_on_nvme, searched };

// (a) to (d), in the order in which they are run.
const std::vector<Placement>& placements();
std::string title(Placement placement);  // "(b) state in RAM"

struct RunFiles {
  std::filesystem::path model, shard, output, exported, nvme;
};

// Learning rate and batch do not depend on the number of steps, so that runs of different length
// take the same steps. `device`: empty leaves the choice to Strata.
std::string train_config(Placement placement, const ModelShape& shape, const RunFiles& files,
                         int steps, const std::string& device);

// Text whose documents are longer than a row, for `strata prepare`.
std::string training_text(const ModelShape& shape, int steps);

}  // namespace strata
