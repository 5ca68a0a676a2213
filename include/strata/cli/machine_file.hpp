#pragma once
// Machine profiles as YAML files: docs/design/machines.md tells the layout. Strict: an unknown key
// is an error with the nearest name, a rate without its unit another, and each value says where it
// comes from. Thread contract: pure but for the file.

#include <filesystem>
#include <string>

#include "strata/plan/machine.hpp"

namespace strata {

// Throws ConfigError naming file, line and key; FormatError or SystemError when there is no such
// file to read.
MachineProfile read_machine_file(const std::filesystem::path& path);
MachineProfile parse_machine_file(const std::string& yaml, const std::string& source_name);

// A file that reads back as the same profile. A value without a source is written as "not stated".
std::string machine_file_text(const MachineProfile& machine);

}  // namespace strata
