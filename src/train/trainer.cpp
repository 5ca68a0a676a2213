#include "strata/train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
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

using Paths = std::vector<std::filesystem::path>;

void check_shards(const RunConfig& config, const std::string& key, const Paths& paths) {
  if (paths.empty())
    throw ConfigError(key + " names no token shard: make one with `strata prepare`");
  const HfConfig hf = read_hf_config(config.model_name_or_path);
  for (const auto& path : paths) {
    if (!std::filesystem::is_regular_file(path))
      throw ConfigError(
          fmt::format("{}: {} is no file: make it with `strata prepare`", key, path.string()));
    const TokenShardInfo info = TokenShard(path, TokenShardCheck::header).info();
    if (info.vocab_size > static_cast<std::uint64_t>(hf.vocab_size))
      throw ConfigError(fmt::format(
          "{} was tokenised with a vocabulary of {}, the model in {} has {}: use the model's own "
          "tokenizer",
          path.string(), info.vocab_size, config.model_name_or_path.string(), hf.vocab_size));
  }
}

}  // namespace

void check_data(const RunConfig& config) {
  check_shards(config, "dataset", config.dataset);
  if (config.evaluate) check_shards(config, "eval_dataset", config.eval_dataset);
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
    : config_(config), session_(session), progress_(progress), options_(options) {
  check_shards(config, "dataset", config.dataset);
  const int rank = session.run().program.rank;
  train_ = open_batches(config, config.dataset, RowOrder::shuffled, rank);
  if (config.evaluate) held_out_ = held_out_batches(config, rank);
  // Micro-batches run on from one epoch into the next, so only the last step rounds up.
  steps_per_epoch_ = static_cast<double>(train_->micro_batches_per_epoch()) /
                     static_cast<double>(config.gradient_accumulation_steps * config.world);
  total_steps_ =
      config.max_steps > 0
          ? config.max_steps
          : static_cast<std::int64_t>(std::ceil(config.num_train_epochs * steps_per_epoch_ - 1e-9));
  const double warmup = config.warmup_steps;
  schedule_ = {config.lr_scheduler_type,
               config.learning_rate,
               static_cast<std::int64_t>(
                   warmup < 1 ? std::ceil(warmup * static_cast<double>(total_steps_)) : warmup),
               total_steps_,
               config.lr_decay_steps,
               config.lr_min_ratio,
               config.lr_num_cycles};
}

Trainer::~Trainer() = default;

void Trainer::prepare(Slot& slot, std::int64_t step) {
  const std::int64_t accumulation = config_.gradient_accumulation_steps;
  slot.inputs.resize(static_cast<std::size_t>(accumulation));
  slot.args.inputs.clear();
  slot.tokens = 0;
  for (std::int64_t i = 0; i < accumulation; ++i) {
    auto& input = slot.inputs[static_cast<std::size_t>(i)];
    input.resize(static_cast<std::size_t>(3 * train_->tokens_per_micro_batch()));
    train_->fill(step * accumulation + i, input);
    slot.tokens += train_->trained_tokens(step * accumulation + i);
    slot.args.inputs.push_back(std::as_bytes(std::span(input)));
  }
  slot.args.index = step;
  slot.args.loss_scale = slot.tokens > 0 ? 1.0 / static_cast<double>(slot.tokens) : 0.0;
  slot.args.hyper = {updates_applied_ + 1, static_cast<float>(schedule_.rate(step)),
                     static_cast<float>(config_.max_grad_norm)};
}

TrainOutcome Trainer::run(const std::atomic<bool>* stop) {
  const auto stopping = [&] { return session_.any_rank(stop != nullptr && *stop); };
  TrainOutcome outcome;
  StepsInFlight<Slot> steps(session_.executor(), "train");
  if (held_out_ != nullptr) evaluate(0, outcome.held_out_before, stop);
  StepRecorder recorder(options_, session_.executor(), session_.run(), total_steps_);
  const std::int64_t begin = now_ns();
  std::int64_t last = begin;
  for (std::int64_t step = 0; step < total_steps_ && !stopping(); ++step) {
    Slot& slot = steps.next();
    prepare(slot, step);
    steps.submit();
    // The result is there as soon as the norm is known; the updates go on beside the next step's
    // forward.
    const StepResult& result = steps.take();
    const std::int64_t now = now_ns();
    recorder.took(step, seconds(now - last));
    recorder.collect();
    StepReport line = report(slot, result, seconds(now - last));
    recorder.describe(line);
    last = now;
    outcome.steps = step + 1;
    if (step == 0) outcome.loss_first = result.loss;
    outcome.loss_last = result.loss;
    outcome.skipped_steps += result.applied ? 0 : 1;
    updates_applied_ += result.applied ? 1 : 0;
    show(line);
    if (!result.finite && config_.non_finite == NonFinitePolicy::stop) {
      outcome.failure = fmt::format(
          "step {}: the gradient is not finite (loss {}); nothing of this step was applied. Lower "
          "learning_rate, or set non_finite: skip_step to go on without such steps",
          step + 1, result.loss);
      break;
    }
    if (evaluation_due(step + 1) && !stopping()) {
      session_.executor().drain();
      recorder.collect();
      recorder.pause();
      Evaluation between;
      evaluate(step + 1, between, stop);
      last = now_ns();
    }
  }
  session_.executor().drain();
  outcome.seconds = seconds(now_ns() - begin);
  finish(recorder, outcome);
  outcome.stopped = outcome.failure.empty() && outcome.steps < total_steps_;
  if (held_out_ != nullptr && !outcome.stopped && outcome.failure.empty())
    evaluate(outcome.steps, outcome.held_out_after, stop);
  return outcome;
}

void Trainer::finish(StepRecorder& recorder, TrainOutcome& outcome) {
  recorder.collect();
  outcome.roofline = recorder.roofline();
  const std::string trouble = recorder.close_trace();
  if (!trouble.empty() && progress_ != nullptr) progress_->event("trace", trouble);
}

bool Trainer::evaluation_due(std::int64_t step) const {
  return held_out_ != nullptr && config_.eval_steps > 0 && step % config_.eval_steps == 0 &&
         step < total_steps_;
}

void Trainer::evaluate(std::int64_t step, Evaluation& into, const std::atomic<bool>* stop) {
  into = session_.evaluate(*held_out_, stop);
  if (into.tokens > 0 && progress_ != nullptr) progress_->evaluation(step, into.loss, into.tokens);
}

void Trainer::show(const StepReport& line) {
  const bool on_terminal =
      line.step % config_.logging_steps == 0 || line.step == 1 || line.step == total_steps_;
  if (progress_ != nullptr) progress_->step(line, on_terminal);
}

StepReport Trainer::report(const Slot& slot, const StepResult& result, double step_seconds) const {
  StepReport line;
  line.step = result.index + 1;
  line.total_steps = total_steps_;
  line.epoch = static_cast<double>(line.step) / steps_per_epoch_;
  line.loss = result.loss;
  line.grad_norm = result.grad_norm;
  line.learning_rate = static_cast<double>(slot.args.hyper.learning_rate);
  line.seconds = step_seconds;
  line.tokens = slot.tokens;
  line.applied = result.applied;
  return line;
}

}  // namespace strata
