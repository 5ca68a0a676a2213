#include "metrics_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

const char* describe(double value) {
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

void put(Json& object, const std::string& key, double value) {
  if (std::isfinite(value)) {
    object[key] = value;
    return;
  }
  object[key] = nullptr;
  object["non_finite"][key] = describe(value);
}

// Text from outside may be no UTF-8; a line must be readable all the same.
std::string dump(const Json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string step_json(const StepReport& report) {
  Json object;
  object["step"] = report.step;
  put(object, "epoch", report.epoch);
  put(object, "loss", report.loss);
  put(object, "grad_norm", report.grad_norm);
  put(object, "learning_rate", report.learning_rate);
  put(object, "step_seconds", report.seconds);
  put(object, "tokens_per_second",
      report.seconds > 0 ? static_cast<double>(report.tokens) / report.seconds : 0);
  const ModelWork& model = report.model;
  if (model.flops > 0) put(object, "model_flops_per_second", model.flops_per_s(report.seconds));
  if (model.mfu(report.seconds) > 0) put(object, "mfu", model.mfu(report.seconds));
  object["num_tokens"] = report.tokens;
  object["applied"] = report.applied;
  for (const auto& [cause, seconds] : report.waits)
    put(object, "offload/wait_" + cause + "_s", seconds);
  object["offload/timing_step"] = report.timing_step;
  for (const auto& [lane, seconds] : report.busy)
    put(object, "offload/busy_" + lane + "_s", seconds);
  object["offload/nvme_bytes_read"] = report.nvme_bytes_read;
  object["offload/nvme_bytes_written"] = report.nvme_bytes_written;
  if (report.written.nvme > 0) object[nvme_written_key] = report.written.nvme;
  if (report.written.checkpoints > 0) object[checkpoints_written_key] = report.written.checkpoints;
  if (report.comm_bytes > 0) object["offload/comm_bytes"] = report.comm_bytes;
  for (const auto& [resource, share] : report.used) put(object, "offload/used_" + resource, share);
  for (const auto& [link, rate] : report.rates)
    put(object, "offload/bytes_per_second_" + link, rate);
  for (const auto& [resource, share] : report.roofline)
    put(object, "offload/roofline_" + resource, share);
  return dump(object);
}

std::string evaluation_json(std::int64_t step, double loss, std::int64_t tokens) {
  Json object;
  object["step"] = step;
  put(object, "eval_loss", loss);
  object["eval_num_tokens"] = tokens;
  return dump(object);
}

std::string saved_json(const SaveReport& report) {
  Json object;
  object["step"] = report.step;
  object["checkpoint"] = report.path;
  object["checkpoint_bytes"] = report.bytes;
  put(object, "checkpoint_seconds", report.seconds);
  if (report.bytes_total > 0) object[checkpoints_written_key] = report.bytes_total;
  if (report.steps_meanwhile == 0) return dump(object);
  object["checkpoint_steps"] = report.steps_meanwhile;
  put(object, "checkpoint_carrier_extra_seconds", report.carrier_extra_seconds);
  put(object, "checkpoint_extra_seconds", report.extra_seconds);
  return dump(object);
}

std::string event_json(const std::string& name, const std::string& text) {
  Json object;
  object["event"] = name;
  object["text"] = text;
  return dump(object);
}

}  // namespace strata
