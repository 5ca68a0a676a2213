#pragma once
// Names that people bring from Hugging Face, LLaMA-Factory, axolotl and DeepSpeed: those that were
// renamed, and those that Strata knows but cannot honour except at the value that means "off".
// Nothing is ignored silently.

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

// Whether `name` is `pattern`, or begins as one that ends in '*' does.
bool matches_name(std::string_view pattern, std::string_view name);

// outdated: warned of; synonym: as good a name.
enum class OldName : std::uint8_t { outdated, synonym };
struct RenamedKey {
  std::string old_name, new_name;
  OldName kind = OldName::outdated;
};
const std::vector<RenamedKey>& renamed_keys();
const RenamedKey* find_renamed(std::string_view name);

// A key that at one value means another key's: `use_cpu: true` is `device: cpu`.
struct TranslatedKey {
  std::string name, value;  // as normalised_value() writes it
  std::string new_name, new_value;
};
const std::vector<TranslatedKey>& translated_keys();
const TranslatedKey* find_translated(std::string_view name, const YAML::Node& value);

// Values that ask for nothing.
namespace accepted {
using Values = std::vector<std::string>;
inline const Values off{"false", "none", "0"}, only_true{"true"}, any{"*"}, never{};
}  // namespace accepted

struct RecognisedKey {
  std::string name;                   // may end in '*'
  std::vector<std::string> accepted;  // values with nothing to do, as normalised_value() writes
                                      // them, "*" any; null always is
  std::string reason;                 // why others are refused, and what to do
};
const std::vector<RecognisedKey>& recognised_keys();
const RecognisedKey* find_recognised(std::string_view name);
bool accepts(const RecognisedKey& key, const YAML::Node& value);

// One spelling for values that mean the same: "false" for no/off/False, "0" for 0.0, "null" for
// nothing and for empty lists, tables and strings, "..." for others that are no scalar.
std::string normalised_value(const YAML::Node& value);

}  // namespace strata
