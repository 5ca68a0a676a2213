#include "sim/tiny_training.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"
#include "strata/core/philox.hpp"
#include "strata/data/token_shard.hpp"
#include "support/own_path.hpp"
#include "support/policies.hpp"
#include "support/weights_file.hpp"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

TokenDocument random_text(PhiloxStream& random) {
  std::string text(20 + random.next_below(60), ' ');
  for (char& c : text)
    c = static_cast<char>('a' + random.next_below(26) * random.next_below(3) / 2);
  return byte_tokenize(text);
}

void write_documents(const fs::path& path, const std::vector<TokenDocument>& documents) {
  TokenShardInfo info;
  info.vocab_size = byte_tokenizer_vocab;
  info.tokenizer = "byte";
  write_token_shard(path, info, documents);
}

void write_texts(const fs::path& path, int count, std::uint64_t seed) {
  PhiloxStream random(seed, 5);
  std::vector<TokenDocument> documents;
  for (int i = 0; i < count; ++i) documents.push_back(random_text(random));
  write_documents(path, documents);
}

// The value of a field that metrics.jsonl writes as null when it is not finite.
double number(const nlohmann::json& line, const std::string& key) {
  if (!line.at(key).is_null()) return line.at(key).get<double>();
  return line.at("non_finite").at(key) == "nan" ? std::nan("") : HUGE_VAL;
}

}  // namespace

fs::path fresh_folder(const std::string& name) {
  static int count = 0;
  const fs::path folder = own_path(name + "-" + std::to_string(count++));
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

TrainingFiles make_training_files(const HfConfig& model, int documents, DType dtype) {
  const fs::path folder = fresh_folder("files");
  TrainingFiles files{folder / "model", folder / "train.tok", folder / "heldout.tok"};
  RandomModelOptions options;
  options.config = model;
  options.dtype = dtype;
  options.threads = 1;
  make_random_model(files.model, options);
  write_texts(files.train_shard, documents, 1);
  write_texts(files.heldout_shard, 6, 2);
  return files;
}

const TrainingFiles& tiny_files(int documents) {
  static std::mutex mutex;
  static std::map<int, TrainingFiles> made;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = made.try_emplace(documents);
  if (is_new) at->second = make_training_files(random_model_preset("tiny"), documents);
  return at->second;
}

const TrainingFiles& one_layer_files() {
  static const TrainingFiles made = [] {
    HfConfig model = random_model_preset("tiny");
    model.num_hidden_layers = 1;
    return make_training_files(model, 60);
  }();
  return made;
}

TrainingFiles poisoned_files(int documents) {
  const TrainingFiles files = make_training_files(random_model_preset("tiny"), 1);
  std::vector<TokenDocument> texts(
      static_cast<std::size_t>(documents),
      byte_tokenize("a document of just the words that all of them have"));
  texts.push_back(byte_tokenize("one byte \x01 of this one has no finite embedding"));
  fs::remove(files.train_shard);
  write_documents(files.train_shard, texts);
  overwrite_weights(files.model, "model.embed_tokens.weight", 64, 64,
                    std::numeric_limits<float>::infinity());
  return files;
}

RunConfig tiny_config(const TrainingFiles& files) {
  RunConfig config;
  config.model_name_or_path = files.model;
  config.dataset = {files.train_shard};
  config.eval_dataset = {files.heldout_shard};
  config.cutoff_len = 32;
  config.gradient_accumulation_steps = 2;
  config.max_steps = 20;
  config.learning_rate = 2e-3;
  config.weight_decay = 0.1;
  config.max_grad_norm = 0.5;
  config.lr_scheduler_type = ScheduleKind::cosine;
  config.warmup_steps = 3;
  config.evaluate = true;
  config.eval_steps = 7;
  config.compute_threads = 1;
  config.update_threads = 1;
  config.offload.tile_bytes = 64 << 10;
  return config;
}

std::string difference(const Outcome& expected, const Outcome& got) {
  std::string text;
  if (expected.losses != got.losses) text += " losses";
  if (expected.norms != got.norms) text += " norms";
  if (expected.held_out != got.held_out) text += " held-out losses";
  if (expected.weights != got.weights) text += " weights";
  return text;
}

Outcome logged_outcome(const fs::path& output_dir) {
  Outcome outcome;
  std::ifstream file(output_dir / "metrics.jsonl");
  for (std::string text; std::getline(file, text);) {
    const auto line = nlohmann::json::parse(text);
    if (line.contains("eval_loss")) outcome.held_out.push_back(number(line, "eval_loss"));
    if (!line.contains("grad_norm")) continue;
    outcome.losses.push_back(number(line, "loss"));
    outcome.norms.push_back(number(line, "grad_norm"));
  }
  return outcome;
}

std::unique_ptr<IoEngine> make_sim_engine_for(const OffloadConfig& offload,
                                              const SimOptions& options) {
  auto engine = make_sim_engine(options);
  for (const std::string& path : offload.nvme_paths) engine->file_system().make_directory(path);
  return engine;
}

PlannedRun plan_here(const RunConfig& config) { return plan_run(config, Purpose::train); }

TrainingRun::TrainingRun(RunConfig config, const ExecutorOptions& options,
                         const EngineFactory& make_engine,
                         const std::function<PlannedRun(const RunConfig& config)>& make_plan,
                         const TrainerOptions& watched)
    : config_(std::move(config)), quiet_(std::fopen("/dev/null", "w"), std::fclose) {
  config_.output_dir = fresh_folder("run");
  if (config_.offload.nvme_paths.empty())
    config_.offload.nvme_paths = {config_.output_dir.string()};
  session_ =
      std::make_unique<Session>(config_, make_plan(config_), SessionOptions{options, make_engine});
  progress_ = std::make_unique<Progress>(config_.output_dir, Style::plain, quiet_.get());
  trainer_ = std::make_unique<Trainer>(config_, *session_, progress_.get(), watched);
}

TrainingRun::~TrainingRun() {
  trainer_.reset();
  progress_.reset();
  session_.reset();
  std::error_code ignored;
  fs::remove_all(config_.output_dir, ignored);
}

TrainOutcome TrainingRun::train(const std::atomic<bool>* stop) { return trainer_->run(stop); }

Outcome TrainingRun::outcome() {
  Outcome outcome = logged_outcome(config_.output_dir);
  outcome.weights = exported_weights();
  return outcome;
}

std::string TrainingRun::exported_weights() {
  const fs::path target = config_.output_dir / ("export" + std::to_string(exports_++));
  session_->export_to(target);
  return read_bytes(target / "model.safetensors");
}

Outcome train(const RunConfig& config, const ExecutorOptions& options,
              const EngineFactory& make_engine) {
  TrainingRun run(config, options, make_engine);
  run.train();
  return run.outcome();
}

void place_randomly(RunConfig& config, std::uint64_t seed) {
  const Policy policy = random_policy(seed);
  const auto of = [&](Role role) { return policy.fractions[static_cast<std::size_t>(role)]; };
  OffloadConfig& offload = config.offload;
  offload.weights = of(Role::weight);
  offload.gradients = of(Role::gradient);
  offload.master = of(Role::master);
  offload.moment1 = of(Role::moment1);
  offload.moment2 = of(Role::moment2);
  offload.activations = of(Role::activation);
  offload.saved = of(Role::saved);
  offload.keep_layers = static_cast<std::int64_t>(PhiloxStream(seed, 101).next_below(4));
  offload.weight_slots = policy.weight_slots;
  offload.gradient_slots = policy.gradient_slots;
  offload.activation_slots = policy.activation_slots;
  offload.state_slots = policy.state_slots;
  offload.staging_slots = policy.staging_slots;
  PhiloxStream random(seed, 99);
  const int threads[] = {1, 2, 5};
  offload.tile_bytes = std::uint64_t{16 << 10} << (2 * random.next_below(4));
  offload.io_engine = random.next_below(2) == 0 ? "auto" : "threads";
  config.compute_threads = threads[random.next_below(3)];
  config.update_threads = threads[random.next_below(3)];
}

std::string read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) throw Error("no bytes in " + path.string());
  return text.str();
}

}  // namespace strata::testing
