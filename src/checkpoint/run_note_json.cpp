#include "checkpoint/run_note_json.hpp"

#include <cmath>

#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::uint64_t number_max = std::uint64_t{1} << 62;

std::int64_t whole(const StoreJsonReader& json, const char* key) {
  return static_cast<std::int64_t>(json.number(key, 0, number_max));
}

std::optional<HeldOutLoss> held_out_of(const StoreJsonReader& json) {
  if (!json.has("held_out_loss")) return std::nullopt;
  return HeldOutLoss{json.real("held_out_loss"), json.text("held_out_fingerprint")};
}

}  // namespace

nlohmann::ordered_json run_note_json(const RunNote& note) {
  nlohmann::ordered_json json = {{"step", note.step},
                                 {"updates_applied", note.updates_applied},
                                 {"skipped_steps", note.skipped_steps},
                                 {"micro_batches_seen", note.micro_batches_seen},
                                 {"rows_per_micro_batch", note.rows_per_micro_batch},
                                 {"sequence_length", note.sequence_length},
                                 {"data_seed", note.data_seed},
                                 {"seed", note.seed},
                                 {"data_fingerprint", note.data_fingerprint},
                                 {"model_fingerprint", note.model_fingerprint},
                                 {"config", note.config}};
  if (!note.held_out) return json;
  ensure(std::isfinite(note.held_out->loss));  // JSON has no other numbers.
  json["held_out_loss"] = note.held_out->loss;
  json["held_out_fingerprint"] = note.held_out->data;
  return json;
}

RunNote read_run_note(const StoreJsonReader& json) {
  return {.step = whole(json, "step"),
          .updates_applied = whole(json, "updates_applied"),
          .skipped_steps = whole(json, "skipped_steps"),
          .micro_batches_seen = whole(json, "micro_batches_seen"),
          .rows_per_micro_batch = whole(json, "rows_per_micro_batch"),
          .sequence_length = whole(json, "sequence_length"),
          .data_seed = json.number("data_seed", 0, ~std::uint64_t{0}),
          .seed = json.number("seed", 0, ~std::uint64_t{0}),
          .data_fingerprint = json.text("data_fingerprint"),
          .model_fingerprint = json.text("model_fingerprint"),
          .config = json.text("config"),
          .held_out = held_out_of(json)};
}

}  // namespace strata
