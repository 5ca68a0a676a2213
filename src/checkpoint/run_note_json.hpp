#pragma once
// A RunNote as members of a JSON object: of checkpoint.json, and of what a versioned store keeps
// with each version. Thread contract: pure.

#include <nlohmann/json.hpp>

#include "io/store/store_json_reader.hpp"
#include "strata/checkpoint/state_checkpoint.hpp"

namespace strata {

nlohmann::ordered_json run_note_json(const RunNote& note);
// Throws FormatError naming the reader's file and what is wrong.
RunNote read_run_note(const StoreJsonReader& json);

}  // namespace strata
