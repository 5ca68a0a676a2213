#pragma once
// The whole Plan as JSON, to which others add.

#include <nlohmann/json.hpp>

#include "strata/plan/plan.hpp"

namespace strata {

nlohmann::ordered_json plan_json(const Program& program, const Plan& plan);

}  // namespace strata
