#pragma once
// What a measurement of the optimizer's passes means for a run. Thread contract: pure.

#include <optional>
#include <string>
#include <vector>

#include "strata/measure/adam_bench.hpp"

namespace strata {

// A model whose step is asked about.
struct UpdateDemand {
  std::string whose;  // "7B"
  double parameters = 0;
  std::optional<AdamLayout> layout = {};  // that its config asks for
};

// Seconds of the norm of the gradient and the update, by the most threads and for the most
// parameters that were measured; nothing where the layout was not.
std::optional<double> step_seconds(const PassReport& report, const AdamLayout& layout,
                                   double parameters);

std::string format_adam_answer(const PassReport& report, const std::vector<AdamLayout>& layouts,
                               const std::vector<UpdateDemand>& demands);

}  // namespace strata
