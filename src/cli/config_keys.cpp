#include "config_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config_choices.hpp"
#include "config_key_kinds.hpp"

namespace strata {
namespace {

using namespace key_kinds;

ConfigKey eval_strategy(std::string name, std::string doc) {
  return {std::move(name), "one of " + eval_strategies.joined(), std::move(doc),
          [](const ConfigValue& value, RunConfig& config) {
            const EvalMoments moments = eval_strategies.parse(value);
            config.evaluate = moments != EvalMoments::never;
            config.eval_each_epoch = moments == EvalMoments::by_epochs;
          },
          [](const RunConfig& config) {
            if (!config.evaluate) return eval_strategies.name_of(EvalMoments::never);
            return eval_strategies.name_of(config.eval_each_epoch ? EvalMoments::by_epochs
                                                                  : EvalMoments::by_steps);
          }};
}

ConfigKey resume_key(std::string name, std::string doc) {
  return {std::move(name), "true, false or path", std::move(doc),
          [](const ConfigValue& value, RunConfig& config) {
            const std::string text = value.text();
            config.resume_from_checkpoint = text == "false" || text == "null" ? "" : text;
          },
          [](const RunConfig& config) {
            const std::string& text = config.resume_from_checkpoint;
            return text.empty() ? "false" : text == "true" ? text : yaml_text(text);
          }};
}

ConfigKey seed(std::string name, std::string doc) {
  return {std::move(name), "integer >= 0", std::move(doc),
          [](const ConfigValue& value, RunConfig& config) { config.seed = value.seed(); },
          [](const RunConfig& config) { return fmt::format("{}", config.seed); }};
}

ConfigKey data_seed(std::string name, std::string doc) {
  return {std::move(name), "integer >= 0", std::move(doc),
          [](const ConfigValue& value, RunConfig& config) { config.data_seed = value.seed(); },
          [](const RunConfig& config) {
            return config.data_seed ? fmt::format("{}", *config.data_seed) : "null";
          }};
}

const IntegerRange from_zero{.low = 0}, from_one{.low = 1};
// Doubles beyond 2^53 skip integers.
const NumberRange step_count{.low = 0, .low_bound = Bound::exclusive, .high = 9007199254740992.0};
const NumberRange step_count_or_none{.high = 9007199254740992.0};
const IntegerRange slots{.low = 1, .high = 1024}, threads{.low = 0, .high = 4096};
const NumberRange any_positive{.low = 0, .low_bound = Bound::exclusive}, not_negative{};
const NumberRange beta{.high = 1}, ratio{.high = 1, .high_bound = Bound::inclusive};

std::vector<ConfigKey> data_keys() {
  using C = RunConfig;
  return {
      path("model_name_or_path", at(&C::model_name_or_path), "Hugging Face model folder."),
      path("output_dir", at(&C::output_dir),
           "Where metrics, the resolved config and the export go."),
      optional_path("export_dir", at(&C::export_dir),
                    "Where the final weights go; null: `output_dir`/export."),
      choice<std::optional<DType>>("export_dtype", at(&C::export_dtype), export_dtypes,
                                   "Elements of the export; null: the working weights as they "
                                   "are. fp32: the master weights."),
      paths("dataset", at(&C::dataset),
            "Token shards to train on, made by `strata prepare` or, with the model's own "
            "tokenizer, by "
            "`scripts/prepare.py`."),
      paths("eval_dataset", at(&C::eval_dataset), "Held-out token shards."),
      boolean("allow_other_tokenizer", at(&C::allow_other_tokenizer),
              "Train and evaluate on shards that were not made with the model's `tokenizer.json`, "
              "such as the bytes of `strata prepare`; false: they are refused."),
      integer("cutoff_len", at(&C::cutoff_len), {.low = 2, .high = 1 << 24}, "Tokens per row."),
      choice<RowLayout>("packing", at(&C::layout), layouts,
                        "How documents fill rows: one stream cut into rows, whole documents packed "
                        "(true), or one "
                        "document per row (false). Attention never crosses documents."),
  };
}

std::vector<ConfigKey> length_keys() {
  using C = RunConfig;
  return {
      integer("per_device_train_batch_size", at(&C::per_device_train_batch_size),
              {.low = 1, .high = 1 << 16}, "Rows per micro-batch."),
      integer(
          "per_device_eval_batch_size", at(&C::per_device_eval_batch_size), from_one,
          "Evaluation runs at `per_device_train_batch_size` rows, which changes no result: another "
          "value is a warning."),
      integer("gradient_accumulation_steps", at(&C::gradient_accumulation_steps),
              {.low = 1, .high = 1 << 16}, "Micro-batches per optimizer step."),
      optional_integer(
          "train_batch_size", at(&C::train_batch_size), from_one,
          "Rows per optimizer step of all ranks, DeepSpeed's word: checked against the "
          "product of the two keys above and the ranks; null: not checked."),
      number("num_train_epochs", at(&C::num_train_epochs), any_positive, "Passes over the data."),
      integer("max_steps", at(&C::max_steps), {.low = -1},
              "Optimizer steps; -1: by num_train_epochs."),
  };
}

std::vector<ConfigKey> optimizer_keys() {
  using C = RunConfig;
  return {
      choice<UpdateRule>("optim", at(&C::optim), optimizers,
                         "The optimizer: AdamW, Adam with coupled decay, SGD with momentum, Lion. "
                         "transformers' names of them are accepted (`adamw_torch` ...)."),
      choice<MasterFormat>(
          "optimizer_master", at(&C::optimizer_master), master_formats,
          "How the fp32 master weights are kept: whole, or *split* into the bf16 working weight "
          "and the 16 low bits beside it: 2 bytes fewer per parameter, the same bits. split needs "
          "bf16: true."),
      choice<DType>(
          "optimizer_moments", at(&C::optimizer_moments), moment_formats,
          "Format of the optimizer's moments. bf16 and q8 (8 bits, a scale per 256 elements) are "
          "*approximate*: rounded at random by `seed`, they change the result a little."),
      number("learning_rate", at(&C::learning_rate), not_negative, "Peak learning rate."),
      number("weight_decay", at(&C::weight_decay), not_negative,
             "Decay of the weights, decoupled with adamw and lion, added to the gradient with adam "
             "and sgd; norms and biases are exempt."),
      number("adam_beta1", at(&C::adam_beta1), beta,
             "Decay of the first moment (adamw, adam), or Lion's first beta."),
      number("adam_beta2", at(&C::adam_beta2), beta,
             "Decay of the second moment (adamw, adam), or of Lion's one."),
      number("adam_epsilon", at(&C::adam_epsilon), not_negative,
             "Epsilon of adamw and adam, outside the root."),
      number("sgd_momentum", at(&C::sgd_momentum), beta,
             "Momentum of sgd; 0, as in transformers: none."),
      number("max_grad_norm", at(&C::max_grad_norm), not_negative,
             "Global norm over all tiers to which gradients are clipped; 0: no clipping."),
      choice<ScheduleKind>("lr_scheduler_type", at(&C::lr_scheduler_type), schedules,
                           "Schedule of the learning rate, as in transformers."),
      steps("warmup_steps", at(&C::warmup_steps), step_count_or_none, "Steps of warm-up."),
  };
}

std::vector<ConfigKey> run_keys() {
  using C = RunConfig;
  return {
      boolean("bf16", at(&C::bf16),
              "bf16 compute; false: fp32. Master weights are fp32 either way."),
      seed("seed",
           "Seed of the data order unless `data_seed` is given, and of the rounding of approximate "
           "moments."),
      data_seed("data_seed", "Seed of the data order; null: `seed`."),
      steps("logging_steps", at(&C::logging_steps), step_count,
            "Steps between lines on the terminal; `metrics.jsonl` has every step."),
      eval_strategy("eval_strategy",
                    "Whether held-out loss is taken: at the start, the end, and every `eval_steps` "
                    "or after each epoch between."),
      steps("eval_steps", at(&C::eval_steps), step_count_or_none,
            "Steps between evaluations; 0: at the start and end only."),
      choice<NonFinitePolicy>(
          "non_finite", at(&C::non_finite), non_finite_policies,
          "What happens when a gradient is not finite; the update is never applied."),
      choice<DeviceKind>("device", at(&C::device), device_kinds,
                         "What computes: a GPU for each rank, or the host (`cpu`). `auto`: GPUs "
                         "where the driver shows some, the host on a machine without; GPUs whose "
                         "driver is there and fails are an error."),
      choice<KernelsKind>("kernels", at(&C::kernels), kernel_kinds,
                          "Host kernels: fast, or the readable reference, which is the host's "
                          "alone: no GPU is used with it."),
      integer("compute_threads", at(&C::compute_threads), threads,
              "Threads of the model's math on the host; 0: all usable cores."),
      integer("update_threads", at(&C::update_threads), threads,
              "Threads of the CPU optimizer; 0: all usable cores."),
  };
}

std::vector<ConfigKey> checkpoint_keys() {
  using C = RunConfig;
  return {
      choice<SaveStrategy>(
          "save_strategy", at(&C::save_strategy), save_strategies,
          "When checkpoints are written to `output_dir`; `no`: never, also not when "
          "the run is stopped."),
      steps("save_steps", at(&C::save_steps), step_count, "Steps between checkpoints."),
      integer("save_total_limit", at(&C::save_total_limit), from_zero,
              "Checkpoints to keep; older ones are removed once a new one is verified, but for the "
              "best where one is asked for: with 1, that and the last are kept. 0: all."),
      boolean(
          "load_best_model_at_end", at(&C::load_best_model_at_end),
          "Each checkpoint is evaluated first, the one of least held-out loss is never removed, "
          "and its weights are exported at the end, unless the last ones are better. "
          "`save_strategy` and `eval_strategy` must be alike, `save_steps` a multiple of "
          "`eval_steps`."),
      choice<BestMetric>(
          "metric_for_best_model", at(&C::metric_for_best_model), best_metrics,
          "What the best checkpoint is the best by: the held-out loss (also "
          "`eval_loss`). Set without `load_best_model_at_end`: the best is kept, and "
          "the last weights are exported. null: loss where a best one is asked for."),
      boolean("save_only_model", at(&C::save_only_model),
              "Checkpoints are Hugging Face folders of the weights alone: no run can go on from "
              "them."),
      boolean(
          "save_in_background", at(&C::save_in_background),
          "Training goes on while a checkpoint is written, with a few tiles more of CPU memory. "
          "false: it stands still meanwhile."),
      choice<SaveFailurePolicy>("on_save_failure", at(&C::on_save_failure), save_failure_policies,
                                "What happens when a checkpoint could not be written; those that "
                                "stand are kept either way."),
      resume_key("resume_from_checkpoint",
                 "The checkpoint to go on from; true: the newest of `output_dir`, or the beginning "
                 "when there is none. Tiers, ratios, ranks, stage and accumulation may differ from "
                 "its run's."),
      number("max_hours", at(&C::max_hours), not_negative,
             "Hours after which the run stops with a checkpoint (exit code 75); 0: no limit."),
      number("grace_period", at(&C::grace_period), not_negative,
             "Seconds that the scheduler gives a run between SIGTERM and SIGKILL: a run that would "
             "take longer to stop is warned of. 0: not known."),
  };
}

std::vector<ConfigKey> schedule_keys() {
  using C = RunConfig;
  return {
      number("lr_scheduler_kwargs.min_lr_ratio", at(&C::lr_min_ratio), ratio,
             "cosine, cosine_with_min_lr, warmup_stable_decay: floor as a fraction of the peak."),
      number(
          "lr_scheduler_kwargs.min_lr", at(&C::lr_min), not_negative,
          "cosine, cosine_with_min_lr: floor as a rate, in place of `min_lr_ratio`; 0: by that."),
      integer("lr_scheduler_kwargs.num_decay_steps", at(&C::lr_decay_steps), from_zero,
              "warmup_stable_decay: length of the decay at the end."),
      optional_number(
          "lr_scheduler_kwargs.num_cycles", at(&C::lr_num_cycles), any_positive,
          "cosine, cosine_with_min_lr: waves; 0.5, the default, falls from peak to floor once. "
          "cosine_with_restarts: falls from peak to 0, each begun at the peak; 1 by default."),
      number("lr_scheduler_kwargs.power", at(&C::lr_power), any_positive,
             "polynomial: power of the share of steps that is left."),
      number("lr_scheduler_kwargs.lr_end", at(&C::lr_end), not_negative,
             "polynomial: the rate at the end, below `learning_rate`."),
      integer(
          "lr_scheduler_kwargs.timescale", at(&C::lr_timescale), from_zero,
          "inverse_sqrt: steps in which the rate falls to 1/sqrt(2); 0: those of the warm-up, or "
          "10000 without one."),
  };
}

std::vector<ConfigKey> rank_keys() {
  using C = RunConfig;
  return {
      integer("ranks", at(&C::ranks), {.low = 1, .high = 1024},
              "Ranks of this process that train together, a thread each; each takes its share of "
              "cores, RAM and drives. Started by `mpirun`, every process has that many."),
      number("ddp_timeout", at(&C::ddp_timeout), any_positive,
             "Seconds that a rank waits for another before the run ends, naming who did not come."),
      integer("zero_optimization.stage", at(&C::zero_stage), {.low = 0, .high = 3},
              "What several ranks hold a slice of each, in place of all of it: 1: the optimizer's "
              "state; 2: gradients too; 3: weights too; 0: nothing. One rank holds all either "
              "way."),
  };
}

std::vector<ConfigKey> tier_keys() {
  using O = OffloadConfig;
  return {
      tiers("offload.weights", at(&O::weights), "Working weights."),
      tiers("offload.gradients", at(&O::gradients), "Gradients."),
      tiers("offload.master", at(&O::master),
            "Master weights, or the low bits of split ones; part of `offload.optimizer`."),
      tiers("offload.moment1", at(&O::moment1),
            "The optimizer's first moment; part of `offload.optimizer`."),
      tiers("offload.moment2", at(&O::moment2),
            "The second moment of adamw and adam; part of `offload.optimizer`."),
      tiers("offload.activations", at(&O::activations), "Activations at block boundaries."),
      tiers("offload.saved", at(&O::saved),
            "What the layers of `offload.keep_layers` keep for backward."),
  };
}

std::vector<ConfigKey> offload_keys() {
  using O = OffloadConfig;
  return {
      boolean("offload.auto", at(&O::automatic),
              "Search for the fastest plan that fits: where each role lives, slots, schedule, "
              "recomputation. Keys of `offload` that are set stay as they are. Needs a machine's "
              "rates: `--machine FILE`."),
      paths("offload.nvme_paths", at(&O::nvme_paths), "A folder on each drive of the NVMe tier."),
      numbers("offload.nvme_weights", at(&O::nvme_weights), any_positive,
              "Relative bandwidth of each drive of `offload.nvme_paths`, such as its measured "
              "GB/s: bytes are placed in proportion. Empty: all alike."),
      optional_size("offload.gpu_limit", at(&O::gpu_limit),
                    "Device memory to use at most; null: all there is."),
      optional_size("offload.cpu_limit", at(&O::cpu_limit),
                    "Host memory that all ranks of a host use at most for their tiers, loads and "
                    "saves; null: what is available, but for a reserve."),
      size("offload.tile_bytes", at(&O::tile_bytes),
           "Unit of placement and I/O, in bytes of fp32 state; a multiple of 16KiB, at most 1GiB."),
      integer("offload.weight_slots", at(&O::weight_slots), slots,
              "Blocks of weights on the device at once."),
      integer("offload.gradient_slots", at(&O::gradient_slots), slots,
              "Blocks of gradients on the device at once."),
      integer("offload.activation_slots", at(&O::activation_slots), slots,
              "Boundary activations, and saved layers, in flight on the device at once."),
      integer("offload.state_slots", at(&O::state_slots), slots,
              "Tiles of optimizer state in flight to and from NVMe."),
      integer("offload.staging_slots", at(&O::staging_slots), slots,
              "Weight and gradient tiles in host memory on their way between tiers."),
      word("offload.update_order", at(&O::update_order),
           {"auto", "after_backward", "deferred", "during_backward"},
           "When the optimizer updates a tile: after backward, before the next step begins; after "
           "backward, running on into the next forward, which waits for each block's updates only "
           "(deferred); or as soon as its gradient is complete, which needs `max_grad_norm: 0` and "
           "`non_finite: stop`. auto: during_backward where that is allowed, else deferred. The "
           "bits are the same."),
      number("offload.streamed_updates", at(&O::streamed_updates), ratio,
             "Fraction of the optimizer state off the device whose updates the device makes, while "
             "the state passes through it; the CPU makes the others. Spread evenly over the tiles; "
             "the bits are the same."),
      accumulation_group(
          "offload.accumulation_group", at(&O::accumulation_group),
          "Micro-batches that pass each block together, so that its weights are fetched once for "
          "all of them: one (horizontal), all of a step (vertical), or a divisor of "
          "`gradient_accumulation_steps`. The boundary activations of a group are kept at once. "
          "The bits are the same; not for models with tied embeddings."),
      keep_layers("offload.keep_layers", at(&O::keep_layers),
                  "Decoder layers, spread evenly over the depth, that keep what backward needs of "
                  "their forward, where `offload.saved` says; the others compute their forward "
                  "again in backward. all: every one. The bits are the same."),
      word("offload.io_engine", at(&O::io_engine), {"auto", "uring", "threads"},
           "How NVMe is read and written."),
      integer("offload.io_queue_depth", at(&O::io_queue_depth), {.low = 1, .high = 4096},
              "I/O requests in flight."),
      number("offload.io_stall_seconds", at(&O::io_stall_seconds), any_positive,
             "When a drive has given nothing back for so long, a warning lists what it holds; "
             "after 10 times as long again the run ends with exit code 3."),
      boolean("offload.verify_nvme", at(&O::verify_nvme),
              "Keep a checksum (XXH3) of every tile written to NVMe and compare it on every read: "
              "a tile that comes back changed ends the run. Costs one pass over memory per "
              "transfer, on a thread beside the I/O; the bytes on disk stay the same."),
      boolean("offload.versioned", at(&O::versioned),
              "Every step durable: master and moments, all of them on nvme, have two places there, "
              "and a step ends with a commit. After a crash or a power cut "
              "`resume_from_checkpoint: true` goes on from the last step; no checkpoint is needed "
              "and no byte more is written. Takes their bytes on nvme twice."),
  };
}

std::vector<ConfigKey> all_keys() {
  std::vector<ConfigKey> keys;
  for (const auto& part :
       {data_keys(), length_keys(), optimizer_keys(), run_keys(), checkpoint_keys(),
        schedule_keys(), rank_keys(), tier_keys(), offload_keys()}) {
    keys.insert(keys.end(), part.begin(), part.end());
  }
  return keys;
}

}  // namespace

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> keys = all_keys();
  return keys;
}

const ConfigKey* find_key(std::string_view name) {
  const auto found = std::ranges::find(config_keys(), name, &ConfigKey::name);
  return found == config_keys().end() ? nullptr : &*found;
}

bool is_key_group(std::string_view name) {
  const std::string prefix = std::string(name) + ".";
  return std::ranges::any_of(config_keys(),
                             [&](const ConfigKey& key) { return key.name.starts_with(prefix); });
}

}  // namespace strata
