#pragma once
// What a versioned store keeps with each version: the output folder of its run, and where the run
// stood. Thread contract: pure.

#include <string>

#include "strata/checkpoint/state_checkpoint.hpp"

namespace strata {

struct DurableNote {
  std::string output_dir;  // absolute
  RunNote note;
};
std::string durable_note_text(const DurableNote& note);
// Throws FormatError that names the store at `path`.
DurableNote parse_durable_note(const std::string& text, const std::string& path);

}  // namespace strata
