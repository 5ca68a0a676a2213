#include "config_names.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace strata {
namespace {

using Values = std::vector<std::string>;
const Values off{"false", "none", "0"};
const Values only_true{"true"};
const Values any{"*"};
const Values never{};

std::vector<RecognisedKey> training_keys() {
  return {
      {"fp16*", off, "fp16 needs loss scaling, which Strata does not do; use bf16: true"},
      {"tf32", off,
       "products are of bf16 elements or of whole fp32 ones; use bf16: true, which is as fast"},
      {"pure_bf16", off,
       "masters keep the precision of fp32; use bf16: true, and optimizer_master: split for one "
       "that adds 2 bytes to the weight"},
      {"optim_args", off,
       "the arguments are adam_beta1, adam_beta2, adam_epsilon, sgd_momentum and weight_decay"},
      {"optim_target_modules", off, "all weights are trained by one optimizer; remove it"},
      {"gradient_checkpointing", only_true,
       "offload.keep_layers says which layers are not computed again in backward; set true or "
       "remove it"},
      {"gradient_checkpointing_kwargs", off,
       "offload.keep_layers says which layers are not computed again in backward; remove it"},
      {"average_tokens_across_devices", only_true,
       "the loss is always divided by the trained tokens of all ranks; set true or remove it"},
      {"label_smoothing_factor", off, "the loss is plain cross-entropy; set 0"},
      {"neftune_noise_alpha", off, "no noise is added to embeddings; remove it"},
      {"group_by_length", off, "rows have a fixed length; use packing: packed"},
      {"torch_compile*", off, "there is no PyTorch underneath; remove it"},
      {"use_liger_kernel", off, "there is no PyTorch underneath; remove it"},
      {"flash_attn",
       {"auto", "false", "disabled"},
       "attention never stores the score matrix; remove it"},
      {"auto_find_batch_size", off, "the plan says before step 0 what fits; see `strata plan`"},
      {"use_cpu", off, "use device: cpu"},
      {"no_cuda", off, "use device: cpu"},
  };
}

std::vector<RecognisedKey> run_keys() {
  return {
      {"save_safetensors", only_true,
       "weights are always written as safetensors; set true or remove it"},
      {"save_on_each_node", off, "a checkpoint is one folder that all ranks write to; remove it"},
      {"ignore_data_skip", off, "a resumed run goes on at its place in the data; remove it"},
      {"overwrite_output_dir", off,
       "an export that is there is never overwritten; remove it or name another export_dir"},
      {"load_best_model_at_end", off,
       "the last weights are exported; `strata checkpoint export` exports those of a checkpoint"},
      {"metric_for_best_model", never, "no best model is kept; remove it"},
      {"greater_is_better", off, "no best model is kept; remove it"},
      {"push_to_hub", off, "nothing is uploaded; remove it"},
      {"hub_*", off, "nothing is uploaded; remove it"},
      {"report_to", {"none", "false"}, "metrics go to metrics.jsonl; set report_to: none"},
      {"run_name", never, "no tracker is connected, metrics go to metrics.jsonl; remove it"},
      {"logging_dir", never, "metrics go to metrics.jsonl in output_dir; remove it"},
      {"logging_strategy", {"steps"}, "the terminal follows steps; use logging_steps"},
      {"logging_first_step", any, "the first step is always shown"},
      {"logging_nan_inf_filter", off, "losses that are not finite are never hidden; set false"},
      {"plot_loss", off, "draw metrics.jsonl with the tool of your choice; remove it"},
      {"include_effective_tokens_per_second", any, "tokens per second are always reported"},
      {"disable_tqdm", any, "there is no progress bar"},
      {"do_train", only_true,
       "`strata train` trains; for the held-out loss alone use `strata eval`"},
      {"do_eval", off, "use eval_strategy: steps with eval_dataset"},
      {"do_predict", off, "use another program for inference on the exported folder"},
      {"eval_on_start", off,
       "held-out loss is always taken at the start and end; use eval_strategy: steps"},
      {"eval_accumulation_steps", off, "evaluation keeps no logits; remove it"},
      {"eval_delay", off, "use eval_steps"},
      {"ddp_*", off, "ranks exchange what the plan says, without DDP; remove it"},
      {"fsdp*", off, "Strata places state itself; say where it lives under offload:"},
      {"deepspeed", off,
       "reading DeepSpeed files is not implemented yet; say where state lives under offload:"},
  };
}

std::vector<RecognisedKey> data_keys() {
  const std::string prepared = "text is turned into token shards beforehand; see `strata prepare`";
  return {
      {"stage", {"sft", "pt"}, "only the cross-entropy of tokens is trained; use sft or pt"},
      {"finetuning_type", {"full"}, "every weight is trained; set finetuning_type: full"},
      {"lora_*", off, "every weight is trained; remove it"},
      {"freeze_*", off, "every weight is trained; remove it"},
      {"quantization_*", off, "every weight is trained; remove it"},
      {"neat_packing", only_true, "attention never crosses documents; set true or remove it"},
      {"train_on_prompt", off, prepared},
      {"mask_history", off, prepared},
      {"template", never, prepared},
      {"dataset_dir", never, "give the paths of token shards in dataset"},
      {"max_samples", never, prepared},
      {"val_size", off, "split when preparing, then give eval_dataset"},
      {"overwrite_cache", any, "there is no cache"},
      {"preprocessing_num_workers", never, prepared},
      {"tokenized_path", never, "give the paths of token shards in dataset"},
      {"streaming", off, "token shards are mapped into memory; remove it"},
      {"dataloader_num_workers", off,
       "token shards are mapped into memory, without workers; remove it"},
      {"dataloader_drop_last", off, "the last batch is filled up with empty rows; set false"},
      {"remove_unused_columns", any, "token shards have no columns"},
      {"export_size",
       {"5"},
       "an export's files have 5 GB at most; `strata export --shard-size` writes it anew with "
       "others"},
      {"export_device", {"cpu", "auto"}, "exports are written by the CPU; remove it"},
      {"offload.ratio", never,
       "it is a word for auto alone, which is offload.auto: true; for shares of your own give "
       "offload.optimizer a tier table"},
  };
}

std::vector<RecognisedKey> foreign_keys() {
  const auto axolotl = [](const std::string& name, const std::string& ours) {
    return RecognisedKey{name, never, "it is axolotl's name; the key here is " + ours};
  };
  const auto deepspeed = [](const std::string& name, const std::string& ours) {
    return RecognisedKey{name, never, "it is DeepSpeed's name; " + ours};
  };
  return {
      axolotl("base_model", "model_name_or_path"),
      axolotl("datasets", "dataset"),
      axolotl("sequence_len", "cutoff_len"),
      axolotl("sample_packing", "packing"),
      axolotl("micro_batch_size", "per_device_train_batch_size"),
      axolotl("num_epochs", "num_train_epochs"),
      axolotl("optimizer", "optim"),
      axolotl("lr_scheduler", "lr_scheduler_type"),
      axolotl("val_set_size", "eval_dataset"),
      axolotl("activation_offloading", "offload.activations"),
      deepspeed("train_batch_size",
                "it follows from per_device_train_batch_size and gradient_accumulation_steps"),
      deepspeed("train_micro_batch_size_per_gpu", "use per_device_train_batch_size"),
      deepspeed("gradient_clipping", "use max_grad_norm"),
      deepspeed("zero_optimization.offload_optimizer", "use offload.optimizer"),
      deepspeed("zero_optimization.offload_param", "use offload.weights"),
      deepspeed("zero_optimization.*",
                "of its group only stage is read; say where state lives under offload:"),
      deepspeed("offload.offload_optimizer", "use offload.optimizer"),
      deepspeed("offload.offload_param", "use offload.weights"),
  };
}

std::vector<RecognisedKey> all_recognised() {
  std::vector<RecognisedKey> keys;
  for (const auto& part : {training_keys(), run_keys(), data_keys(), foreign_keys()}) {
    keys.insert(keys.end(), part.begin(), part.end());
  }
  return keys;
}

bool is_zero(const std::string& text) {
  double value = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value == 0;
}

}  // namespace

bool matches_name(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

const std::vector<RenamedKey>& renamed_keys() {
  static const std::vector<RenamedKey> keys{
      {"evaluation_strategy", "eval_strategy"},
      {"warmup_ratio", "warmup_steps"},
      {"per_gpu_train_batch_size", "per_device_train_batch_size"},
      {"per_gpu_eval_batch_size", "per_device_eval_batch_size"},
      {"lr_scheduler_kwargs.min_lr_rate", "lr_scheduler_kwargs.min_lr_ratio"},
      {"offload.params", "offload.weights"},
      {"offload.grads", "offload.gradients"},
  };
  return keys;
}

const RenamedKey* find_renamed(std::string_view name) {
  const auto found = std::ranges::find(renamed_keys(), name, &RenamedKey::old_name);
  return found == renamed_keys().end() ? nullptr : &*found;
}

const std::vector<TranslatedKey>& translated_keys() {
  static const std::vector<TranslatedKey> keys{
      {"use_cpu", "true", "device", "cpu"},
      {"no_cuda", "true", "device", "cpu"},
      {"offload.ratio", "auto", "offload.auto", "true"},
  };
  return keys;
}

const TranslatedKey* find_translated(std::string_view name, const YAML::Node& value) {
  const std::string text = normalised_value(value);
  const auto found = std::ranges::find_if(translated_keys(), [&](const TranslatedKey& key) {
    return key.name == name && key.value == text;
  });
  return found == translated_keys().end() ? nullptr : &*found;
}

const std::vector<RecognisedKey>& recognised_keys() {
  static const std::vector<RecognisedKey> keys = all_recognised();
  return keys;
}

const RecognisedKey* find_recognised(std::string_view name) {
  const auto found = std::ranges::find_if(
      recognised_keys(), [&](const RecognisedKey& key) { return matches_name(key.name, name); });
  return found == recognised_keys().end() ? nullptr : &*found;
}

bool accepts(const RecognisedKey& key, const YAML::Node& value) {
  const std::string text = normalised_value(value);
  if (text == "null") return true;
  return std::ranges::any_of(key.accepted,
                             [&](const std::string& item) { return item == "*" || item == text; });
}

std::string normalised_value(const YAML::Node& value) {
  if (!value.IsDefined() || value.IsNull()) return "null";
  if (value.IsSequence() && value.size() == 1) return normalised_value(value[0]);
  if (!value.IsScalar()) return value.size() == 0 ? "null" : "...";
  std::string text = value.Scalar();
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (text.empty()) return "null";
  if (is_zero(text)) return "0";
  bool boolean = false;
  if (!YAML::convert<bool>::decode(value, boolean)) return text;
  return boolean ? "true" : "false";
}

}  // namespace strata
