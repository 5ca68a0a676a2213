#include <fmt/format.h>

#include <algorithm>

#include "config_keys.hpp"
#include "config_names.hpp"
#include "deepspeed_rules.hpp"
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
error with the reason, a renamed one a warning; all errors of a config are told at once, each with
its line. `null` is the same as leaving a key out. The resolved config, with where each value came
from, lands in `output_dir`; `strata train run.yaml --print-config` (and `plan`) prints it alone, to
be given back. Paths are relative to the
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
  std::string text =
      "\n## Renamed keys\n\nAccepted, outdated ones with a warning.\n\n| old | new |\n|---|---|\n";
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

constexpr const char* deepspeed_introduction = R"(
## DeepSpeed configs

`deepspeed:` names a DeepSpeed config, or holds one; such a JSON may also be the config itself, with
the keys above beside it or on the command line. Each of its keys becomes one of this page's, has no
effect here, or is refused with the reason; the log says which. `"auto"` leaves a key to this page's
name of it. What is set in both must agree; the command line wins over either. As there, a config with
`zero_optimization` keeps on the GPU the optimizer, weights and activations that it does not offload.

`offload_optimizer` and `offload_param` (`device`, `ratio`, `nvme_path`) become `offload.optimizer`,
`offload.weights` and `offload.nvme_paths`, `cpu_checkpointing` becomes `offload.activations`,
`optimizer.type` (AdamW, Adam, SGD, Lion) `optim`, and `scheduler.type` `lr_scheduler_type`: WarmupLR
is `constant_with_warmup`, WarmupDecayLR `linear`, WarmupCosineLR `cosine`.
)";

std::string deepspeed_tables() {
  std::string named, refused, idle;
  for (const DeepSpeedRule& rule : deepspeed_rules()) {
    if (!rule.key.empty())
      named += fmt::format("| {} | {} |\n", code(rule.name), code(rule.key));
    else if (rule.reason.empty())
      idle += (idle.empty() ? "" : ", ") + code(rule.name);
    else if (rule.accepted.empty() || rule.accepted.front() != "*")
      refused += fmt::format("| {} | {} | {} |\n", code(rule.name),
                             accepted_values({rule.name, rule.accepted, rule.reason}), rule.reason);
  }
  return deepspeed_introduction + ("\n| DeepSpeed | here |\n|---|---|\n" + named) +
         "\n| DeepSpeed | accepted | else refused, because |\n|---|---|---|\n" + refused +
         "\nWithout effect here:\n\n| keys |\n|---|\n| " + idle + " |\n";
}

}  // namespace

std::string config_reference_markdown() {
  return introduction + key_table() + tier_tables + renamed_table() + recognised_table() +
         deepspeed_tables();
}

}  // namespace strata
