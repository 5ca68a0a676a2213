#pragma once
// Everything a run is told, after the config file and command line have been read and checked.
// Names are those of Hugging Face TrainingArguments (docs/config.md). A value; no thread contract.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "strata/core/dtype.hpp"
#include "strata/data/batches.hpp"
#include "strata/optim/optimizer.hpp"
#include "strata/optim/schedule.hpp"
#include "strata/plan/plan.hpp"

namespace strata {

// What happens when a gradient is not finite.
enum class NonFinitePolicy : std::uint8_t {
  stop,       // the update is not applied and the run ends with an error
  skip_step,  // the update is not applied, counted and logged
};

// When a checkpoint is written, and what happens when one could not be.
enum class SaveStrategy : std::uint8_t { no, steps, epoch };
// What the best checkpoint, which is kept beside the last ones, is the best by.
enum class BestMetric : std::uint8_t { none, held_out_loss };
enum class SaveFailurePolicy : std::uint8_t { go_on, stop };

enum class KernelsKind : std::uint8_t { cpu, ref };

// What a run computes on. automatic: a GPU per rank where the machine has GPUs, else the host.
enum class DeviceKind : std::uint8_t { automatic, gpu, cpu };

inline constexpr std::int64_t all_layers = std::numeric_limits<int>::max();

struct OffloadConfig {
  bool automatic = false;  // offload.auto: what is not set is searched for (auto_plan())
  // Per role; roles left out of the config keep host = 1.
  TierFractions weights, gradients, master, moment1, moment2, activations;
  TierFractions saved{1, 0, 0};  // of kept layers; gpu = 1 when left out
  std::vector<std::string> nvme_paths;
  std::vector<double> nvme_weights;  // relative bandwidth, one per path; empty: all alike
  std::optional<std::uint64_t> gpu_limit, cpu_limit;
  std::uint64_t tile_bytes = 16ull << 20;  // of fp32 elements
  int weight_slots = 2, gradient_slots = 2, activation_slots = 3, state_slots = 4,
      staging_slots = 4;
  std::string update_order = "auto";    // auto | after_backward | deferred | during_backward
  double streamed_updates = 0;          // fraction of what is updated off the device
  std::int64_t accumulation_group = 1;  // micro-batches; 0: all of a step
  std::int64_t keep_layers = 0;         // layers not recomputed in backward; all_layers
  std::string io_engine = "auto";       // auto | uring | threads
  int io_queue_depth = 32;
  double io_stall_seconds = 30;
  bool verify_nvme = false;
  bool versioned = false;  // every step durable: master and moments in a versioned store
};

struct RunConfig {
  std::filesystem::path model_name_or_path, output_dir = "trainer_output";
  std::vector<std::filesystem::path> dataset, eval_dataset;  // token shards
  bool allow_other_tokenizer = false;                        // than the model's tokenizer.json
  std::int64_t cutoff_len = 2048;
  RowLayout layout =
      RowLayout::windows;  // packing: windows | packed | separate (true = packed, false = separate)

  std::int64_t per_device_train_batch_size = 1, per_device_eval_batch_size = 1,
               gradient_accumulation_steps = 1;
  std::optional<std::int64_t> train_batch_size;  // the product of these and the ranks; checked
  double num_train_epochs = 3;
  std::int64_t max_steps = -1;
  UpdateRule optim = UpdateRule::adamw;
  MasterFormat optimizer_master = MasterFormat::f32;
  DType optimizer_moments = DType::f32;  // f32, bf16 or q8
  double learning_rate = 5e-5, weight_decay = 0, adam_beta1 = 0.9, adam_beta2 = 0.999,
         adam_epsilon = 1e-8, sgd_momentum = 0;
  double max_grad_norm = 1.0;
  ScheduleKind lr_scheduler_type = ScheduleKind::linear;
  double lr_min_ratio = 0;          // lr_scheduler_kwargs.min_lr_ratio
  std::int64_t lr_decay_steps = 0;  // lr_scheduler_kwargs.num_decay_steps
  // lr_scheduler_kwargs.num_cycles; default: 0.5, or 1 with cosine_with_restarts.
  std::optional<double> lr_num_cycles;
  // lr_scheduler_kwargs: .min_lr (0: lr_min_ratio says), .power, .lr_end, .timescale (0: that of
  // the warm-up, or 10000).
  double lr_min = 0, lr_power = 1, lr_end = 1e-7;
  std::int64_t lr_timescale = 0;
  double warmup_steps = 0;  // below 1: a ratio of all steps
  bool bf16 = true;         // false: fp32 compute
  std::uint64_t seed = 42;
  std::optional<std::uint64_t> data_seed;
  double ddp_timeout = 1800;                 // seconds that a rank waits for another
  double logging_steps = 1, eval_steps = 0;  // below 1: a ratio of all steps
  bool evaluate = false;         // eval_strategy is not "no": at the start and end at least
  bool eval_each_epoch = false;  // eval_strategy is "epoch": in place of eval_steps
  SaveStrategy save_strategy = SaveStrategy::steps;
  double save_steps = 500;                              // below 1: a ratio of all steps
  std::int64_t save_total_limit = 0;                    // 0: all are kept
  bool load_best_model_at_end = false;                  // the best checkpoint is exported
  BestMetric metric_for_best_model = BestMetric::none;  // of load_best_model_at_end: the loss
  bool save_only_model = false;
  bool save_in_background = true;  // state is written while training goes on
  SaveFailurePolicy on_save_failure = SaveFailurePolicy::go_on;
  // "": from the beginning; "true": the newest of output_dir, if there is one; else a path.
  std::string resume_from_checkpoint;
  double max_hours = 0;     // 0: no limit
  double grace_period = 0;  // seconds from the stop signal to the kill; 0: not known
  std::optional<std::filesystem::path> export_dir;  // default output_dir/export
  std::optional<DType> export_dtype;  // bf16, or f32: the master weights; default: the weights'
  NonFinitePolicy non_finite = NonFinitePolicy::stop;

  // Ranks of this process, and of all processes; they train together. What is sliced among them:
  // nothing, master and moments (1), gradients too (2), all (3).
  std::int64_t ranks = 1;
  int world = 1;
  int zero_stage = 3;

  OffloadConfig offload;
  DeviceKind device = DeviceKind::automatic;
  KernelsKind kernels = KernelsKind::cpu;
  int compute_threads = 0, update_threads = 0;  // 0: all usable cores

  // Key, value and where it came from ("default", "run.yaml:4", "command line"), in the order of
  // docs/config.md.
  struct Origin {
    std::string key, value, origin;
  };
  std::vector<Origin> resolved;
  std::vector<std::string> warnings;  // renamed keys; shown once at start
  std::vector<std::string> notes;     // what the keys of a DeepSpeed config became
};

}  // namespace strata
