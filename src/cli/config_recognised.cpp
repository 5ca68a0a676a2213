#include "config_names.hpp"

namespace strata {
namespace {

using namespace accepted;

std::vector<RecognisedKey> recognised_training_keys() {
  return {
      {"fp16_backend", any, "it has a meaning with fp16 alone"},
      {"fp16_opt_level", any, "it has a meaning with fp16 alone"},
      {"half_precision_backend", any, "there is one"},
      {"bf16_full_eval", any, "evaluation computes as training does"},
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
      {"activation_checkpointing", only_true,
       "offload.keep_layers says which layers are not computed again in backward; set true or "
       "remove it"},
      {"activation_checkpointing_kwargs", off,
       "offload.keep_layers says which layers are not computed again in backward; remove it"},
      {"disable_gradient_checkpointing", off,
       "use offload.keep_layers: all, which computes no layer again in backward"},
      {"use_reentrant_gc", any, "there is no PyTorch underneath"},
      {"average_tokens_across_devices", only_true,
       "the loss is always divided by the trained tokens of all ranks; set true or remove it"},
      {"label_smoothing_factor", off, "the loss is plain cross-entropy; set 0"},
      {"neftune_noise_alpha", off, "no noise is added to embeddings; remove it"},
      {"group_by_length", off, "rows have a fixed length; use packing: packed"},
      {"torch_compile*", off, "there is no PyTorch underneath; remove it"},
      {"torch_empty_cache_steps", any, "nothing is allocated in a step"},
      {"use_liger_kernel", any, "kernels are fused either way"},
      {"liger_kernel_config", any, "kernels are fused either way"},
      {"flash_attn",
       {"auto", "false", "disabled", "fa2", "fa3", "sdpa"},
       "attention never stores the score matrix; remove it"},
      {"adafactor", off, "its factored second moment needs whole matrices; use optim"},
      {"full_determinism", any, "results are the same bits in every run"},
      {"auto_find_batch_size", off, "the plan says before step 0 what fits; see `strata plan`"},
      {"use_cpu", off, "use device: cpu"},
      {"no_cuda", off, "use device: cpu"},
      {"use_mps_device", off, "use device: gpu or device: cpu"},
      {"use_ipex", off, "there is no PyTorch underneath; remove it"},
      {"tpu_*", off, "use device: gpu or device: cpu"},
      {"jit_mode_eval", off, "there is no PyTorch underneath; remove it"},
      {"use_cache", any, "training keeps no cache of keys and values"},
      {"past_index", {"-1"}, "training keeps no cache of keys and values; remove it"},
      {"debug", off, "see `strata train --trace` and offload.verify_nvme; remove it"},
  };
}

std::vector<RecognisedKey> recognised_run_keys() {
  return {
      {"save_safetensors", only_true,
       "weights are always written as safetensors; set true or remove it"},
      {"save_on_each_node", off, "a checkpoint is one folder that all ranks write to; remove it"},
      {"ignore_data_skip", off, "a resumed run goes on at its place in the data; remove it"},
      {"overwrite_output_dir", off,
       "an export that is there is never overwritten; remove it or name another export_dir"},
      {"greater_is_better", off,
       "the best model is that of the least held-out loss; set false or remove it"},
      {"push_to_hub", off, "nothing is uploaded; remove it"},
      {"hub_*", off, "nothing is uploaded; remove it"},
      {"report_to", {"none", "false"}, "metrics go to metrics.jsonl; set report_to: none"},
      {"run_name", any, "it names a run for trackers, of which none is connected"},
      {"project", any, "it names a run for trackers, of which none is connected"},
      {"trackio_*", any, "they name a run for trackers, of which none is connected"},
      {"logging_dir", never, "metrics go to metrics.jsonl in output_dir; remove it"},
      {"logging_strategy", {"steps"}, "the terminal follows steps; use logging_steps"},
      {"logging_first_step", any, "the first step is always shown"},
      {"logging_nan_inf_filter", off, "losses that are not finite are never hidden; set false"},
      {"plot_loss", off, "draw metrics.jsonl with the tool of your choice; remove it"},
      {"include_effective_tokens_per_second", any, "tokens per second are always reported"},
      {"include_num_input_tokens_seen", any, "tokens are always reported"},
      {"include_tokens_per_second", any, "tokens per second are always reported"},
      {"disable_tqdm", any, "there is no progress bar"},
      {"log_level", any, "there are no levels: warnings go to stderr, the rest to stdout"},
      {"log_level_replica", any, "the first rank alone reports"},
      {"log_on_each_node", any, "the first rank alone reports"},
      {"skip_memory_metrics", any, "memory is always reported"},
      {"do_train", only_true,
       "`strata train` trains; for the held-out loss alone use `strata eval`"},
      {"do_eval", off, "use eval_strategy: steps with eval_dataset"},
      {"do_predict", off, "use another program for inference on the exported folder"},
      {"eval_on_start", off,
       "held-out loss is always taken at the start and end; use eval_strategy: steps"},
      {"eval_accumulation_steps", off, "evaluation keeps no logits; remove it"},
      {"eval_delay", off, "use eval_steps"},
      {"eval_do_concat_batches", any, "evaluation keeps no logits"},
      {"eval_use_gather_object", any, "evaluation keeps no logits"},
      {"prediction_loss_only", any, "evaluation takes the loss alone"},
      {"include_for_metrics", off, "evaluation takes the loss alone; remove it"},
      {"include_inputs_for_metrics", off, "evaluation takes the loss alone; remove it"},
      {"batch_eval_metrics", off, "evaluation takes the loss alone; remove it"},
      {"predict_with_generate", off, "evaluation takes the loss alone; remove it"},
      {"enable_jit_checkpoint", any, "a run that is stopped always leaves a checkpoint"},
      {"restore_callback_states_from_checkpoint", off, "there are no callbacks; remove it"},
      {"local_rank", {"-1", "0"}, "the launcher says which rank a process is; remove it"},
      {"parallelism_config", never, "use ranks and zero_optimization.stage"},
      {"accelerator_config", never, "every rank reads its own rows of the shards; remove it"},
      {"mp_parameters", never, "it is for SageMaker; remove it"},
      {"ray_*", off, "several machines are started by `mpirun`; remove it"},
      {"use_ray", off, "several machines are started by `mpirun`; remove it"},
      {"ddp_*", any, "ranks exchange what the plan says, without DDP"},
      {"fsdp*", off, "Strata places state itself; say where it lives under offload:"},
  };
}

std::vector<RecognisedKey> recognised_data_keys() {
  const std::string prepared =
      "text is turned into token shards beforehand; see scripts/prepare.py";
  return {
      {"stage", {"sft", "pt"}, "only the cross-entropy of tokens is trained; use sft or pt"},
      {"finetuning_type", {"full"}, "every weight is trained; set finetuning_type: full"},
      {"lora_*", off, "every weight is trained; remove it"},
      {"freeze_*", off, "every weight is trained; remove it"},
      {"adapter_name_or_path", never, "every weight is trained; merge adapters beforehand"},
      {"use_llama_pro", off, "every weight is trained; remove it"},
      {"quantization_*", off, "every weight is trained; remove it"},
      {"neat_packing", only_true, "attention never crosses documents; set true or remove it"},
      {"train_on_prompt", off, prepared},
      {"mask_history", off, prepared},
      {"template", never, prepared},
      {"dataset_dir", never, "give the paths of token shards in dataset"},
      {"max_samples", never, prepared},
      {"val_size", off, "split when preparing, then give eval_dataset"},
      {"overwrite_cache", any, "there is no cache"},
      {"preprocessing_num_workers", any, prepared},
      {"preprocessing_batch_size", any, prepared},
      {"tool_format", never, prepared},
      {"default_system", never, prepared},
      {"enable_thinking", never, prepared},
      {"split_special_tokens", off, prepared},
      {"use_fast_tokenizer", any, prepared},
      {"ignore_pad_token_for_loss", only_true, "padding is never trained; set true or remove it"},
      {"mix_strategy", {"concat"}, "token shards follow one another; repeat one to weigh it"},
      {"interleave_probs", never, "token shards follow one another; repeat one to weigh it"},
      {"eval_on_each_dataset", off, "one loss is taken over all of eval_dataset; remove it"},
      {"disable_shuffling", off, "rows are shuffled by data_seed; remove it"},
      {"media_dir", never, "text alone is trained; remove it"},
      {"image_*", never, "text alone is trained; remove it"},
      {"video_*", never, "text alone is trained; remove it"},
      {"audio_*", never, "text alone is trained; remove it"},
      {"tokenized_path", never, "give the paths of token shards in dataset"},
      {"streaming", off, "token shards are mapped into memory; remove it"},
      {"dataloader_drop_last", off, "the last batch is filled up with empty rows; set false"},
      {"dataloader_*", any, "token shards are mapped into memory, without workers"},
      {"data_shared_file_system", any, "token shards are mapped into memory, nothing is prepared"},
      {"buffer_size", any, "it has a meaning with streaming alone"},
      {"train_sampling_strategy",
       {"random"},
       "rows have a fixed length and are shuffled by data_seed; set random or remove it"},
      {"length_column_name", any, "token shards have no columns"},
      {"label_names", never, "token shards say which tokens are trained; remove it"},
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

// LLaMA-Factory's words for the model, its methods and its other programs.
std::vector<RecognisedKey> recognised_factory_keys() {
  const std::string every = "every weight is trained by one optimizer; use optim";
  const std::string sft = "only the cross-entropy of tokens is trained; remove it";
  const std::string inference = "it is for inference, which `strata train` does none of";
  const std::string folder = "the model is a folder on this machine, and no code in it is run";
  return {
      {"trust_remote_code", any, folder},
      {"cache_dir", any, folder},
      {"model_revision", {"main"}, "the model is a folder on this machine; remove it"},
      {"low_cpu_mem_usage", any, "weights go from the folder to their tier, tile by tile"},
      {"hf_hub_token", any, folder},
      {"ms_hub_token", any, folder},
      {"om_hub_token", any, folder},
      {"enable_liger_kernel", any, "kernels are fused either way"},
      {"use_v1_kernels", any, "kernels are fused either way"},
      {"upcast_layernorm", any, "norms are computed in fp32"},
      {"upcast_lmhead_output", any, "the loss is computed in fp32"},
      {"use_unsloth*", off, "there is no PyTorch underneath; remove it"},
      {"shift_attn", off, "attention is the model's own; remove it"},
      {"mixture_of_depths", off, "the model is what its config.json says; remove it"},
      {"moe_aux_loss_coef", off, "there are no models of experts here; remove it"},
      {"rope_scaling", never, "write it into the config.json of the model; remove it here"},
      {"resize_vocab", off, "the vocabulary is the model's; remove it"},
      {"add_tokens", never, "the vocabulary is the model's; remove it"},
      {"add_special_tokens", never, "the vocabulary is the model's; remove it"},
      {"new_special_tokens_config", never, "the vocabulary is the model's; remove it"},
      {"train_from_scratch", off, "`strata make-model` makes a folder of random weights"},
      {"print_param_status", off, "`strata inspect` shows what a folder holds; remove it"},
      {"use_galore", off, every},
      {"galore_*", any, "it has a meaning with use_galore alone"},
      {"use_apollo", off, every},
      {"apollo_*", any, "it has a meaning with use_apollo alone"},
      {"use_badam", off, every},
      {"badam_*", any, "it has a meaning with use_badam alone"},
      {"use_adam_mini", off, every},
      {"use_muon", off, every},
      {"use_dft_loss", off, sft},
      {"use_swanlab", off, "metrics go to metrics.jsonl; remove it"},
      {"swanlab_*", any, "it has a meaning with use_swanlab alone"},
      {"pref_*", never, sft},
      {"dpo_*", never, sft},
      {"kto_*", never, sft},
      {"ppo_*", never, sft},
      {"simpo_gamma", never, sft},
      {"ref_model*", never, sft},
      {"reward_model*", never, sft},
      {"compute_accuracy", off, "evaluation takes the loss alone; remove it"},
      {"early_stopping_steps", never, "a run goes to its end; remove it"},
      {"infer_*", any, inference},
      {"vllm_*", any, inference},
      {"sglang_*", any, inference},
      {"use_kv_cache", any, inference},
      {"do_sample", any, inference},
      {"temperature", any, inference},
      {"top_p", any, inference},
      {"top_k", any, inference},
      {"num_beams", any, inference},
      {"eval_num_beams", any, inference},
      {"max_new_tokens", any, inference},
      {"repetition_penalty", any, inference},
      {"length_penalty", any, inference},
      {"skip_special_tokens", any, inference},
      {"export_quantization_*", never, "exports are bf16 or fp32; see export_dtype"},
      {"export_legacy_format", off, "weights are always written as safetensors; remove it"},
      {"export_hub_model_id", never, "nothing is uploaded; remove it"},
  };
}

std::vector<RecognisedKey> recognised_foreign_keys() {
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
  for (const auto& part :
       {recognised_training_keys(), recognised_run_keys(), recognised_data_keys(),
        recognised_factory_keys(), recognised_foreign_keys()}) {
    keys.insert(keys.end(), part.begin(), part.end());
  }
  return keys;
}

}  // namespace

const std::vector<RecognisedKey>& recognised_keys() {
  static const std::vector<RecognisedKey> keys = all_recognised();
  return keys;
}

}  // namespace strata
