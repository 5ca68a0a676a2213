#include "train/durable_note.hpp"

#include "checkpoint/run_note_json.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view note_format = "strata run note";

}  // namespace

std::string durable_note_text(const DurableNote& note) {
  Json json = {{"format", note_format}, {"output_dir", note.output_dir}};
  json.update(run_note_json(note.note));
  try {
    return json.dump();
  } catch (const Json::type_error&) {
    throw ConfigError("output_dir and the config of a run must be UTF-8");
  }
}

DurableNote parse_durable_note(const std::string& text, const std::string& path) {
  const StoreJsonReader json = StoreJsonReader::parse(text, path + " (the note of its version)");
  if (json.text("format") != note_format) json.fail("it does not tell of a run");
  return {json.text("output_dir"), read_run_note(json)};
}

}  // namespace strata
