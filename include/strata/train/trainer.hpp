#pragma once
// The loop: data, learning rate, steps, evaluation and export of one run over a Session.
// Thread contract: one thread; `stop` may be set from a signal handler.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "strata/telemetry/progress.hpp"
#include "strata/telemetry/roofline.hpp"
#include "strata/telemetry/trace.hpp"
#include "strata/train/checkpoints.hpp"
#include "strata/train/grace_period.hpp"
#include "strata/train/session.hpp"

namespace strata {

struct TrainOutcome {
  std::int64_t first_step = 0;  // done before this run, which went on from there
  std::int64_t steps = 0;       // done, those before too
  double loss_first = 0, loss_last = 0;
  Evaluation held_out_before, held_out_after;  // tokens 0: not evaluated
  std::int64_t skipped_steps = 0;
  std::int64_t updates = 0;  // applied by this run
  // A gradient was not finite, or a checkpoint was not written, and the policy is `stop`. Empty:
  // neither.
  std::string failure;
  bool stopped = false;                      // by request or by max_hours, before the last step
  bool out_of_time = false;                  // by max_hours
  std::string checkpoint;                    // the last one of this run; empty: none
  std::optional<std::int64_t> durable_step;  // offload.versioned: what the stores stand at
  double seconds = 0;
  Roofline roofline;  // of the steps after the first two
  WrittenBytes written;
};

struct TrainerOptions {
  TraceFile* trace = nullptr;    // of all ranks of this process; null: no step is traced
  std::int64_t trace_steps = 3;  // > 0; the first two steps of a run are not traced if others are
  std::optional<Simulation> predicted = {};  // of the train schedule on this machine
  const RunNote* resume = nullptr;           // where the session's state stood; null: at the start
  double peak_flops_per_s = 0;               // of each device; 0: not known
};

// What a Trainer would refuse, known from the headers of the token shards: before anything is
// planned or reserved. Throws ConfigError when a shard is not there, is named by no key, or is of a
// vocabulary or a tokenizer that is not the model's.
void check_data(const RunConfig& config);
// What passes because there is nothing to compare its tokenizer with, a sentence for each shard.
std::vector<std::string> data_warnings(const RunConfig& config, Purpose purpose);

// A rank's batches of config.eval_dataset, in order. Throws ConfigError when there is none or they
// are not the model's, as check_data() does.
std::unique_ptr<Batches> held_out_batches(const RunConfig& config, int rank = 0);

class RunSaves;
class StepRecorder;

class Trainer {
 public:
  // `progress` is null on ranks that report nothing: what they would say is the first rank's too.
  Trainer(const RunConfig& config, Session& session, Progress* progress,
          const TrainerOptions& options = {});
  ~Trainer();

  // From now on; for a Trainer that was made without.
  void report_to(Progress& progress);

  std::int64_t total_steps() const { return total_steps_; }
  double steps_per_epoch() const { return steps_per_epoch_; }
  // Runs to the end, or ends after the current step once `*stop` is set on any rank or the time is
  // up: with a checkpoint, where the run writes any, without the last evaluation. `*save`, set on
  // any rank, asks for a checkpoint after the current step, and is taken back. Both may be set from
  // a signal handler. Every rank must call it. A gradient that is not finite, where the policy is
  // `stop`, and a checkpoint that fails, where that is to end the run, are the outcome's failure.
  TrainOutcome run(const std::atomic<bool>* stop = nullptr, std::atomic<bool>* save = nullptr);

 private:
  struct Slot;  // inputs and arguments of one step in flight
  struct Asked {
    bool stop = false, save = false;
    bool by_signal = false;  // the stop, which max_hours may ask for too
  };

  void resume(const RunNote& note);
  double seen_epochs(std::int64_t step) const;
  std::int64_t steps_of_epochs() const;
  RunNote note(std::int64_t step) const;
  void count_writes();
  void prepare(Slot& slot, std::int64_t step);
  void took(const Slot& slot, const StepResult& result, double seconds, StepRecorder& recorder,
            TrainOutcome& outcome);
  Asked ask(const std::atomic<bool>* stop, std::atomic<bool>* save, TrainOutcome& outcome);
  WrittenBytes written() const;
  void fail_without_updates(TrainOutcome& outcome) const;
  bool is_save_due(std::int64_t step, bool is_asked_for);
  void save_state(bool is_last, TrainOutcome& outcome);
  void save_at_end(TrainOutcome& outcome);
  void warn_of_stop();
  StepReport report(const Slot& slot, const StepResult& result, double seconds) const;
  void finish(StepRecorder& recorder, TrainOutcome& outcome);
  void show(const StepReport& line);
  void evaluate(std::int64_t step, Evaluation& into, const std::function<bool()>& stops);
  void remember(std::int64_t step, const Evaluation& result);
  bool evaluation_due(std::int64_t step) const;
  bool is_saved_by_plan(std::int64_t step) const;

  const RunConfig& config_;
  Session& session_;
  Progress* progress_;
  const TrainerOptions options_;
  std::unique_ptr<Batches> train_, held_out_;
  double steps_per_epoch_ = 0;
  std::int64_t total_steps_ = 0;
  LearningRateSchedule schedule_;
  RunNote facts_;  // what every checkpoint of this run says alike
  // The last evaluation that came to its end, and the step it was after.
  std::int64_t evaluated_step_ = -1;
  HeldOutLoss held_out_loss_;
  std::unique_ptr<RunSaves> saves_;
  // Where the run stands. Step s takes this rank's micro-batches from first_index_ + s x
  // accumulation on.
  std::int64_t first_step_ = 0, first_index_ = 0, updates_applied_ = 0, skipped_steps_ = 0;
  std::int64_t began_ns_ = 0;
  bool save_asked_ = false;  // before the step that is to be saved
  StopTime slowest_ = {};    // step, after the first two, and save so far
  bool stop_warned_ = false;
  ModelWork model_work_;
  std::uint64_t nvme_written_ = 0;  // by all ranks
  // That a step of "train" and one of "train_save" write.
  std::uint64_t step_writes_ = 0, saving_step_writes_ = 0;
};

}  // namespace strata
