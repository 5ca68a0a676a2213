#include "strata/train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "strata/plan/prediction.hpp"
#include "strata/train/run_steps.hpp"
#include "train/run_note.hpp"
#include "train/run_saves.hpp"
#include "train/shard_check.hpp"
#include "train/step_recorder.hpp"
#include "train/steps_in_flight.hpp"

namespace strata {
namespace {

std::vector<TokenShard> open_shards(const std::vector<std::filesystem::path>& paths) {
  std::vector<TokenShard> shards;
  for (const auto& path : paths) shards.emplace_back(path);
  return shards;
}

std::unique_ptr<Batches> open_batches(const RunConfig& config,
                                      const std::vector<std::filesystem::path>& paths,
                                      RowOrder order, int rank) {
  BatchOptions options;
  options.sequence_length = config.cutoff_len;
  options.rows_per_micro_batch = config.per_device_train_batch_size;
  options.layout = config.layout;
  options.order = order;
  options.seed = config.data_seed.value_or(config.seed);
  options.world = config.world;
  options.rank = rank;
  return std::make_unique<Batches>(open_shards(paths), options);
}

}  // namespace

void check_data(const RunConfig& config) {
  check_shards(config, "dataset", config.dataset);
  if (config.evaluate) check_shards(config, "eval_dataset", config.eval_dataset);
}

std::vector<std::string> data_warnings(const RunConfig& config, Purpose purpose) {
  std::vector<std::filesystem::path> paths;
  if (purpose == Purpose::train) paths = config.dataset;
  if (purpose == Purpose::evaluate || config.evaluate)
    paths.insert(paths.end(), config.eval_dataset.begin(), config.eval_dataset.end());
  return unchecked_shards(config, paths);
}

std::unique_ptr<Batches> held_out_batches(const RunConfig& config, int rank) {
  check_shards(config, "eval_dataset", config.eval_dataset);
  return open_batches(config, config.eval_dataset, RowOrder::in_order, rank);
}

struct Trainer::Slot {
  std::vector<std::vector<std::int32_t>> inputs;
  StepArgs args;
  std::int64_t tokens = 0;
};

Trainer::Trainer(const RunConfig& config, Session& session, Progress* progress,
                 const TrainerOptions& options)
    : config_(config),
      session_(session),
      progress_(progress),
      options_(options),
      saves_(std::make_unique<RunSaves>(config, session, progress)) {
  check_shards(config, "dataset", config.dataset);
  facts_ = run_facts_of(config, session.run());
  model_work_ = {model_flops(session.run().program), options.peak_flops_per_s};
  const int rank = session.run().program.rank;
  train_ = open_batches(config, config.dataset, RowOrder::shuffled, rank);
  if (config.evaluate) {
    held_out_ = held_out_batches(config, rank);
    held_out_loss_.data = held_out_fingerprint(config);
  }
  // Micro-batches run on from one epoch into the next, so only the last step rounds up.
  steps_per_epoch_ = static_cast<double>(train_->micro_batches_per_epoch()) /
                     static_cast<double>(config.gradient_accumulation_steps * config.world);
  if (options.resume != nullptr) resume(*options.resume);
  total_steps_ = config.max_steps > 0 ? config.max_steps : steps_of_epochs();
  schedule_ = learning_rates(config, total_steps_);
}

// Of all ranks, in passes over the data.
double Trainer::seen_epochs(std::int64_t step) const {
  const std::int64_t micro_batches =
      (first_index_ + step * config_.gradient_accumulation_steps) * config_.world;
  return static_cast<double>(micro_batches) /
         static_cast<double>(train_->micro_batches_per_epoch());
}

// Those done before a resume may have been of another size.
std::int64_t Trainer::steps_of_epochs() const {
  const double left = (config_.num_train_epochs - seen_epochs(first_step_)) * steps_per_epoch_;
  return first_step_ + std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(left - 1e-9)));
}

Trainer::~Trainer() = default;

void Trainer::report_to(Progress& progress) {
  progress_ = &progress;
  saves_->report_to(progress);
}

void Trainer::resume(const RunNote& note) {
  if (config_.max_steps > 0 && config_.max_steps < note.step)
    throw ConfigError(
        fmt::format("max_steps is {}, and the checkpoint to resume from stands at step {} already: "
                    "set max_steps to at least {}, or name an older checkpoint",
                    config_.max_steps, note.step, note.step));
  first_step_ = note.step;
  updates_applied_ = note.updates_applied;
  skipped_steps_ = note.skipped_steps;
  check_same_model(session_.run(), note);
  first_index_ =
      resume_index(config_, note, *train_) - note.step * config_.gradient_accumulation_steps;
}

RunNote Trainer::note(std::int64_t step) const {
  RunNote note = facts_;
  note.step = step;
  note.updates_applied = updates_applied_;
  note.skipped_steps = skipped_steps_;
  note.micro_batches_seen =
      (first_index_ + step * config_.gradient_accumulation_steps) * config_.world;
  if (step == evaluated_step_) note.held_out = held_out_loss_;
  return note;
}

// Every rank writes to drives what its plan says; ranks of several hosts to different ones.
void Trainer::count_writes() {
  const Plan& plan = session_.run().plan;
  const auto writes = [&](const char* schedule) {
    return plan.schedule(schedule) == nullptr ? 0 : nvme_traffic(plan, schedule).written_bytes();
  };
  const std::vector<std::uint64_t> all = session_.gather_over_ranks(
      std::vector{writes("train"), writes("train_save"), session_.state().stored_bytes()});
  if (progress_ != nullptr) nvme_written_ = progress_->written_before().nvme;
  for (std::size_t rank = 0; rank < all.size() / 3; ++rank) {
    step_writes_ += all[3 * rank];
    saving_step_writes_ += all[3 * rank + 1];
    nvme_written_ += all[3 * rank + 2];
  }
}

void Trainer::prepare(Slot& slot, std::int64_t step) {
  const std::int64_t accumulation = config_.gradient_accumulation_steps;
  slot.inputs.resize(static_cast<std::size_t>(accumulation));
  slot.args.inputs.clear();
  slot.tokens = 0;
  for (std::int64_t i = 0; i < accumulation; ++i) {
    auto& input = slot.inputs[static_cast<std::size_t>(i)];
    input.resize(static_cast<std::size_t>(3 * train_->tokens_per_micro_batch()));
    train_->fill(first_index_ + step * accumulation + i, input);
    slot.tokens += train_->trained_tokens(first_index_ + step * accumulation + i);
    slot.args.inputs.push_back(std::as_bytes(std::span(input)));
  }
  slot.args.index = step;
  slot.args.loss_scale = slot.tokens > 0 ? 1.0 / static_cast<double>(slot.tokens) : 0.0;
  slot.args.hyper = {updates_applied_ + 1, static_cast<float>(schedule_.rate(step)),
                     static_cast<float>(config_.max_grad_norm)};
}

TrainOutcome Trainer::run(const std::atomic<bool>* stop, std::atomic<bool>* save) {
  TrainOutcome outcome;
  outcome.first_step = outcome.steps = first_step_;
  outcome.skipped_steps = skipped_steps_;
  began_ns_ = now_ns();
  session_.begin_durable(note(first_step_), config_.gradient_accumulation_steps * config_.world);
  count_writes();
  StepsInFlight<Slot> steps(session_.executor());
  // A checkpoint that is under way goes on meanwhile.
  const auto stops = [&] {
    const Asked asked = ask(stop, save, outcome);
    save_asked_ |= asked.save;
    return asked.stop;
  };
  // Time that is up then ends nothing any more.
  const std::function<bool()> stops_at_end = [&] { return ask(stop, save, outcome).by_signal; };
  if (held_out_ != nullptr && first_step_ == 0) evaluate(0, outcome.held_out_before, stops);
  StepRecorder recorder(options_, session_.executor(), session_.run(), total_steps_);
  const std::int64_t begin = now_ns();
  std::int64_t last = begin;
  const auto pause = [&](auto&& work) {
    session_.executor().drain();
    recorder.collect();
    recorder.pause();
    work();
    last = now_ns();
  };
  Asked asked = ask(stop, save, outcome);
  save_asked_ |= asked.save;
  for (std::int64_t step = first_step_; step < total_steps_ && !asked.stop; ++step) {
    Slot& slot = steps.next();
    prepare(slot, step);
    const std::string_view schedule = saves_->schedule();
    steps.submit(schedule);
    // The result is there as soon as the norm is known; the updates go on beside the next step's
    // forward.
    const StepResult& result = steps.take();
    const std::int64_t now = now_ns();
    recorder.took(result.index, seconds(now - last), schedule);
    nvme_written_ += schedule == "train" ? step_writes_ : saving_step_writes_;
    took(slot, result, seconds(now - last), recorder, outcome);
    last = now;
    if (!outcome.failure.empty()) break;
    asked = ask(stop, save, outcome);
    const bool is_due = is_save_due(step, asked.save);
    const bool goes_along = saves_->can_go_along() && step + 1 < total_steps_;
    // First: a checkpoint tells the held-out loss of its state.
    if (!asked.stop && evaluation_due(step + 1)) {
      pause([&] {
        Evaluation between;
        const bool is_last = step + 1 == total_steps_;
        evaluate(step + 1, is_last ? outcome.held_out_after : between,
                 is_last ? stops_at_end : stops);
      });
      asked = ask(stop, save, outcome);  // Who was asked meanwhile.
      save_asked_ |= asked.save;
    }
    if (is_due && (asked.stop || !goes_along)) pause([&] { save_state(asked.stop, outcome); });
    if (!outcome.failure.empty()) break;
    if (is_due && goes_along && !asked.stop) saves_->begin(note(outcome.steps), outcome);
    if (!outcome.failure.empty()) break;
  }
  session_.executor().drain();
  outcome.seconds = seconds(now_ns() - begin);
  outcome.durable_step = session_.durable_step();
  finish(recorder, outcome);
  fail_without_updates(outcome);
  outcome.stopped = outcome.failure.empty() && outcome.steps < total_steps_;
  save_at_end(outcome);
  const bool is_evaluated = outcome.held_out_after.tokens > 0;  // before it was saved
  if (held_out_ != nullptr && !outcome.stopped && outcome.failure.empty() && !is_evaluated)
    evaluate(outcome.steps, outcome.held_out_after, stops_at_end);
  outcome.written = written();
  return outcome;
}

bool Trainer::is_save_due(std::int64_t step, bool is_asked_for) {
  is_asked_for |= std::exchange(save_asked_, false);
  return is_asked_for || is_saved_by_plan(step + 1);
}

bool Trainer::is_saved_by_plan(std::int64_t step) const {
  return saves_->is_due(seen_epochs(step - 1), seen_epochs(step), step, total_steps_);
}

void Trainer::save_state(bool is_last, TrainOutcome& outcome) {
  if (is_last)
    saves_->save_last(note(outcome.steps), outcome);
  else
    saves_->save(note(outcome.steps), outcome);
}

// A run that was stopped leaves a checkpoint, where it writes any.
void Trainer::save_at_end(TrainOutcome& outcome) {
  const bool is_new = outcome.steps > first_step_ && saves_->saved_step() != outcome.steps;
  if (outcome.stopped && is_new && config_.save_strategy != SaveStrategy::no)
    save_state(true, outcome);
  saves_->finish(outcome);
}

void Trainer::took(const Slot& slot, const StepResult& result, double step_seconds,
                   StepRecorder& recorder, TrainOutcome& outcome) {
  saves_->took(step_seconds);
  recorder.collect();
  StepReport line = report(slot, result, step_seconds);
  recorder.describe(line);
  outcome.steps = result.index + 1;
  if (result.index >= first_step_ + 2)
    slowest_.step_seconds = std::max(slowest_.step_seconds, step_seconds);
  if (result.index == first_step_) outcome.loss_first = result.loss;
  outcome.loss_last = result.loss;
  outcome.skipped_steps += result.applied ? 0 : 1;
  skipped_steps_ = outcome.skipped_steps;
  updates_applied_ += result.applied ? 1 : 0;
  outcome.updates += result.applied ? 1 : 0;
  show(line);
  if (result.finite || config_.non_finite != NonFinitePolicy::stop) return;
  outcome.failure = fmt::format(
      "step {}: the gradient is not finite (loss {}); nothing of this step was applied. {}",
      outcome.steps, result.loss,
      updates_applied_ > 0
          ? "Lower learning_rate, or set non_finite: skip_step to go on without such steps"
          : "No update was applied before it, so it comes of what the run began with: look at the "
            "weights of model_name_or_path");
}

// Steps that are all skipped look like training and are none.
void Trainer::fail_without_updates(TrainOutcome& outcome) const {
  const std::int64_t ran = outcome.steps - outcome.first_step;
  const bool is_at_end = outcome.failure.empty() && outcome.steps == total_steps_;
  if (!is_at_end || ran == 0 || outcome.updates > 0) return;
  outcome.failure = fmt::format(
      "none of the {} steps was applied: their gradients were not finite; the weights are what "
      "they "
      "were before",
      ran);
}

WrittenBytes Trainer::written() const { return {nvme_written_, saves_->bytes_written()}; }

// Agreed on by all ranks: each must do the same next.
Trainer::Asked Trainer::ask(const std::atomic<bool>* stop, std::atomic<bool>* save,
                            TrainOutcome& outcome) {
  const double hours = seconds(now_ns() - began_ns_) / 3600;
  const bool out_of_time = config_.max_hours > 0 && hours >= config_.max_hours;
  const SaveVote own = saves_->vote();
  const auto [stops, saves, times_out, is_busy, has_failed] = session_.any_rank(
      std::array{stop != nullptr && *stop, save != nullptr && save->exchange(false), out_of_time,
                 own.is_busy, own.has_failed});
  saves_->agreed({is_busy, has_failed}, outcome);
  warn_of_stop();
  outcome.out_of_time |= times_out && !stops;
  return {stops || times_out, saves, stops};
}

// Once: what a stop would take is known after a few steps and a save.
void Trainer::warn_of_stop() {
  slowest_.save_seconds = saves_->slowest_seconds();
  if (slowest_.save_seconds == 0) return;
  const std::string text = grace_warning(slowest_, config_.grace_period, "measured");
  if (text.empty() || progress_ == nullptr || std::exchange(stop_warned_, true)) return;
  progress_->event("grace_period", text);
}

void Trainer::finish(StepRecorder& recorder, TrainOutcome& outcome) {
  recorder.collect();
  outcome.roofline = recorder.roofline();
  outcome.roofline.model = model_work_;
  const std::string trouble = recorder.finish_trace();
  if (!trouble.empty() && progress_ != nullptr) progress_->event("trace", trouble);
}

// At the end there is one anyway: here the one that comes before a save. Steps that are shares of
// all are rounded up each, so a save may fall beside the evaluations.
bool Trainer::evaluation_due(std::int64_t step) const {
  if (held_out_ == nullptr) return false;
  const bool comes_before_a_save = step == total_steps_ || config_.load_best_model_at_end;
  if (comes_before_a_save && is_saved_by_plan(step)) return true;
  if (step >= total_steps_) return false;
  if (config_.eval_each_epoch) return ends_epoch(seen_epochs(step - 1), seen_epochs(step));
  return config_.eval_steps > 0 && step % num_steps(config_.eval_steps, total_steps_) == 0;
}

void Trainer::evaluate(std::int64_t step, Evaluation& into, const std::function<bool()>& stops) {
  into = session_.evaluate(*held_out_, stops);
  if (into.tokens == 0) return;
  remember(step, into);
  if (progress_ != nullptr) progress_->evaluation(step, into.loss, into.tokens);
}

// A loss that is not finite is the best of nothing.
void Trainer::remember(std::int64_t step, const Evaluation& result) {
  evaluated_step_ = std::isfinite(result.loss) ? step : -1;
  held_out_loss_.loss = result.loss;
}

void Trainer::show(const StepReport& line) {
  const bool on_terminal = line.step % num_steps(config_.logging_steps, total_steps_) == 0 ||
                           line.step == 1 || line.step == total_steps_;
  if (progress_ != nullptr) progress_->step(line, on_terminal);
}

StepReport Trainer::report(const Slot& slot, const StepResult& result, double step_seconds) const {
  StepReport line;
  line.step = result.index + 1;
  line.total_steps = total_steps_;
  line.epoch = seen_epochs(line.step);
  line.loss = result.loss;
  line.grad_norm = result.grad_norm;
  line.learning_rate = static_cast<double>(slot.args.hyper.learning_rate);
  line.seconds = step_seconds;
  line.tokens = slot.tokens;
  line.applied = result.applied;
  line.model = model_work_;
  line.written = written();
  return line;
}

}  // namespace strata
