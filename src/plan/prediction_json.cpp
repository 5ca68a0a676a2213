// A Prediction as JSON for tools: units in the names of keys (docs/design/planning.md).

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plan/plan_json.hpp"
#include "strata/plan/prediction.hpp"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

Json resources_json(const Prediction& p) {
  Json json = Json::object();
  for (const ResourceUse& use : p.resources) {
    const std::string unit = use.resource == Resource::compute ? "flops" : "bytes";
    json[std::string(resource_key(use.resource))] = {
        {"busy_seconds", use.busy_seconds},
        {unit, use.amount},
        {"achieved_" + unit + "_per_s", use.achieved_per_s},
        {"bound_" + unit + "_per_s", use.bound_per_s}};
  }
  return json;
}

Json lanes_json(const std::array<double, num_lanes>& seconds) {
  Json json = Json::object();
  for (std::size_t lane = 0; lane < seconds.size(); ++lane)
    if (seconds[lane] > 0) json[std::string(lane_name(static_cast<Lane>(lane)))] = seconds[lane];
  return json;
}

Json drives_json(const Prediction& p) {
  Json json = Json::array();
  for (const DriveWear& drive : p.drives) {
    Json item{{"written_bytes_per_step", drive.written_bytes}};
    item["life_steps"] = drive.life_steps > 0 ? Json(drive.life_steps) : Json(nullptr);
    json.push_back(std::move(item));
  }
  return json;
}

Json phases_json(const Prediction& p) {
  Json json = Json::object();
  for (const PhaseBytes& phase : p.phases)
    json[phase.name] = {{"gpu_bytes", phase.bytes[0]},
                        {"cpu_bytes", phase.bytes[1]},
                        {"nvme_bytes", phase.bytes[2]}};
  return json;
}

Json savings_json(const Prediction& p) {
  Json json = Json::object();
  for (const Saving& saving : p.savings)
    json[saving.name] = {{"bytes", saving.bytes},
                         {"seconds", saving.seconds > 0 ? Json(saving.seconds) : Json(nullptr)}};
  if (!p.saving_step) return json;
  Json& checkpoint = json["checkpoint"];
  checkpoint["step_seconds"] = p.saving_step->seconds;
  const bool by_steps = p.saving_step->every > 0;
  checkpoint["save_steps"] = by_steps ? Json(p.saving_step->every) : Json(nullptr);
  checkpoint["share_of_time"] = by_steps ? Json(p.saving_step->share) : Json(nullptr);
  return json;
}

Json prediction_json(const Prediction& p) {
  const Simulation& s = p.simulation;
  return {{"format", "strata-prediction-1"},
          {"machine", p.machine},
          {"ranks", p.ranks},
          {"step_seconds", s.step_seconds},
          {"first_step_seconds", s.first_step_seconds},
          {"tokens_per_step", p.tokens_per_step},
          {"tokens_per_s", p.tokens_per_s()},
          {"model_flops_per_step_and_rank", p.model_flops},
          {"flops_per_step_and_rank", s.flops},
          {"mfu", p.mfu},
          {"bound_by", resource_key(s.bound_by)},
          {"bound_seconds", s.bound_seconds()},
          {"resources", resources_json(p)},
          {"lane_busy_seconds", lanes_json(s.lane_busy)},
          {"compute_wait_seconds", lanes_json(s.compute_waits)},
          {"touched", phases_json(p)},
          {"drives", drives_json(p)},
          {"saving", savings_json(p)}};
}

}  // namespace

std::string plan_to_json(const Program& program, const Plan& plan, const Prediction& prediction) {
  Json json = plan_json(program, plan);
  json["prediction"] = prediction_json(prediction);
  return json.dump(1);
}

}  // namespace strata
