#pragma once
// The keys of DeepSpeed configs, each with what it is here: another key, nothing at the values
// that mean nothing here, or refused with the reason.

#include <string>
#include <string_view>
#include <vector>

namespace strata {

struct DeepSpeedRule {
  std::string name;  // with dots; may end in '*'
  std::string key;   // of this program; empty: none
  // Without a key: values with nothing to do, as normalised_value() writes them, "*" any; "auto"
  // always is.
  std::vector<std::string> accepted = {};
  std::string reason = {};  // why others are refused
};

const std::vector<DeepSpeedRule>& deepspeed_rules();
const DeepSpeedRule* find_deepspeed_rule(std::string_view name);
// Whether rules begin with that name: "zero_optimization".
bool is_deepspeed_group(std::string_view name);

}  // namespace strata
