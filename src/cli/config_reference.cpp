#include <fmt/format.h>

#include <algorithm>

#include "config_keys.hpp"
#include "config_names.hpp"
#include "strata/cli/config.hpp"

namespace strata {
namespace {

constexpr const char* introduction = R"(# Config

A run is told by one flat YAML file (JSON is a subset) with the names of Hugging Face
`TrainingArguments`, plus `offload:` for where state lives. `key=value` on the command line
overrides it; dots reach nested keys:

```
strata train run.yaml learning_rate=1e-5 offload.optimizer.nvme=0.5
```

Keys are strict. An unknown key is an error with the nearest name, a known but unsupported one an
error with the reason, a renamed one a warning. `null` is the same as leaving a key out. The
resolved config, with where each value came from, lands in `output_dir`. Paths are relative to the
working directory. Sizes are bytes and take units: `64MiB`, `1.5GB`, `2e9`.

This page is made from the table that the parser walks;
`tests/unit/cli/config_reference_test.cpp` fails when they differ and says how to make it anew.
)";

constexpr const char* tier_tables = R"(
## Tier tables

`offload.weights`, `gradients`, `master`, `moment1`, `moment2`, `activations` and `saved` say which
fraction of the bytes of that state lives on which tier. `offload.optimizer` sets `master`,
`moment1` and `moment2` at once; one of them named by itself wins over it. A role that is not named
lives in host memory (`cpu`), `saved` on the device (`gpu`).

| written | gpu | cpu | nvme | why |
|---|---|---|---|---|
| `{gpu: 0.1, cpu: 0.4, nvme: 0.5}` | 0.1 | 0.4 | 0.5 | fractions in [0, 1] that sum to 1 |
| `{gpu: 0.1}` | 0.1 | 0.9 | 0 | the remainder goes to the next slower tier than those listed: cpu after gpu, |
| `{gpu: 0.1, cpu: 0.4}` | 0.1 | 0.4 | 0.5 | nvme after cpu |
| `{nvme: 0.5}` | 0 | 0.5 | 0.5 | nothing is slower than nvme, so cpu takes the remainder if it is not listed; |
| `{cpu: 0.3, nvme: 0.5}` | | | | if it is, the fractions must sum to 1: an error |
| `nvme` | 0 | 0 | 1 | all on one tier |
| `{device: nvme, ratio: 0.6}` | 0.4 | 0 | 0.6 | DeepSpeed's words: as there, the rest stays on the gpu |

Ratios are exact to one tile; `strata plan` prints the bytes that result.
)";

std::string code(const std::string& text) { return "`" + text + "`"; }

std::string key_table() {
  std::string text = "\n## Keys\n\n| key | default | type | meaning |\n|---|---|---|---|\n";
  const RunConfig defaults;
  for (const ConfigKey& key : config_keys()) {
    text += fmt::format("| {} | {} | {} | {} |\n", code(key.name), code(key.get(defaults)),
                        key.type, key.doc);
  }
  return text;
}

std::string renamed_table() {
  std::string text = "\n## Renamed keys\n\nAccepted with a warning.\n\n| old | new |\n|---|---|\n";
  for (const RenamedKey& key : renamed_keys()) {
    text += fmt::format("| {} | {} |\n", code(key.old_name), code(key.new_name));
  }
  text += "\nAccepted at one value, which means another key's.\n\n| written | means |\n|---|---|\n";
  for (const TranslatedKey& key : translated_keys()) {
    text += fmt::format("| {} | {} |\n", code(key.name + ": " + key.value),
                        code(key.new_name + ": " + key.new_value));
  }
  return text;
}

std::string accepted_values(const RecognisedKey& key) {
  std::string text;
  for (const std::string& value : key.accepted) {
    if (value == "*") return "any value";
    text += (text.empty() ? "" : ", ") + code(value == "false" ? "no" : value);
  }
  return text.empty() ? "none" : text;
}

std::string recognised_table() {
  std::string text =
      "\n## Recognised, without effect\n\nKeys of other programs that need nothing at the accepted "
      "values and are refused "
      "at others. `no` is `false`.\n\n| key | accepted | else refused, because |\n|---|---|---|\n";
  for (const RecognisedKey& key : recognised_keys()) {
    text += fmt::format("| {} | {} | {} |\n", code(key.name), accepted_values(key), key.reason);
  }
  return text;
}

}  // namespace

std::string config_reference_markdown() {
  return introduction + key_table() + tier_tables + renamed_table() + recognised_table();
}

}  // namespace strata
