#include "strata/train/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "io/store/joined_store.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/plan/fit.hpp"
#include "strata/runtime/nvme_tiles.hpp"
#include "strata/train/stall_policy.hpp"
#include "train/checkpoint_sink.hpp"
#include "train/durable_run.hpp"
#include "train/first_touch.hpp"
#include "train/state_loader.hpp"
#include "train/steps_in_flight.hpp"
#include "train/weights_io.hpp"
#include "train/weights_of_masters.hpp"

namespace strata {
namespace {

StoreOptions store_options(const OffloadConfig& offload) {
  StoreOptions options;
  if (!offload.verify_nvme) return options;
  options.checksums = Checksums::on;
  options.verify = Verify::reads;
  return options;
}

std::unique_ptr<ShardStore> make_scratch(const RunConfig& config, IoEngine& engine,
                                         std::vector<StoreTile> tiles) {
  StoreSpec spec;
  spec.directories = config.offload.nvme_paths;
  spec.tiles = std::move(tiles);
  return ShardStore::create(engine, spec, store_options(config.offload));
}

void check_alignment(const ShardStore& store, const Plan& plan) {
  if (store.alignment() <= plan.limits.io_alignment) return;
  throw ConfigError(fmt::format(
      "a drive of offload.nvme_paths wants direct I/O aligned to {} bytes; the plan aligns to {}",
      store.alignment(), plan.limits.io_alignment));
}

// Before anything is reserved.
PlannedRun with_links(PlannedRun run, const RankLinks* links) {
  const int world = links == nullptr ? 1 : links->data->world();
  const int rank = links == nullptr ? 0 : links->data->rank();
  if (run.program.world == world && run.program.rank == rank) return run;
  throw ConfigError(fmt::format("the plan is that of rank {} of {}, the links are rank {}'s of {}",
                                run.program.rank, run.program.world, rank, world));
}

bool uses_nvme(const Plan& plan) {
  return plan.tier_bytes[static_cast<std::size_t>(Tier::nvme)] > 0;
}

// In memory that is near some cores and far from others. A GPU's is its own, and pinned memory
// beside it was placed when it was made.
void place_memory(const PlannedRun& run, const TierMemory& memory) {
  if (run.device != nullptr) return;
  if (run.threads == nullptr || !run.threads->has_far_memory()) return;
  FirstTouch touch(run.threads->update());
  for (const Region& region : host_regions(run.plan))
    touch.divide({memory.host_address(region.offset), region.bytes});
  touch.run(bind_current_thread);
  // The host stands in for the device. Its tiles are read by columns and rows of blocks.
  FirstTouch interleaved(run.threads->compute());
  interleaved.interleave({memory.device_slab().data(), memory.device_slab().bytes()});
  interleaved.run(bind_current_thread);
}

ExecutorOptions with_bound_lanes(ExecutorOptions options, RunThreads* threads) {
  if (threads == nullptr) return options;
  options.on_lane_start = [threads, also = options.on_lane_start](Lane lane) {
    threads->bind_lane(lane);
    if (also) also(lane);
  };
  return options;
}

// One micro-batch of an evaluation.
struct ScoreSlot {
  std::vector<std::int32_t> input;
  StepArgs args;

  void fill(const Batches& batches, std::int64_t micro_batch) {
    input.resize(static_cast<std::size_t>(3 * batches.tokens_per_micro_batch()));
    args.index = micro_batch;
    args.inputs = {std::as_bytes(std::span(input))};
    batches.fill(micro_batch, input);
  }
};

}  // namespace

std::unique_ptr<Device> make_run_device(const Plan& plan) {
  return make_host_device({.memory_bytes = plan.limits.device_bytes});
}

// Both "gpu" and "cpu" are RAM when the host stands in for the device.
void check_host_memory(const PlannedRun& run, int num_host_ranks, std::uint64_t available) {
  const bool stands_in = run.device == nullptr;
  const auto ranks = static_cast<std::uint64_t>(num_host_ranks);
  const std::uint64_t buffer_bytes = run.plan.limits.buffer_bytes,
                      reserve = host_reserve_bytes(available, num_host_ranks);
  const std::uint64_t need =
      ranks * ((stands_in ? run.plan.tier_bytes[0] : 0) + host_bytes_taken(run.plan));
  if (need + reserve <= available) return;
  throw OutOfMemory(
      fmt::format(
          "{} and buffers of {} for loading and saving{}",
          stands_in ? "tiers gpu and cpu together (the host stands in for the GPU)" : "tier cpu",
          format_bytes(buffer_bytes), ranks == 1 ? "" : fmt::format(", of {} ranks", ranks)),
      need, available - reserve,
      fmt::format("of the {} that are available {} are left for the rest of the run; move more to "
                  "nvme, or lower {}offload.cpu_limit to see what fits",
                  format_bytes(available), format_bytes(reserve),
                  stands_in ? "offload.gpu_limit and " : ""));
}

void check_device_memory(const PlannedRun& run) {
  if (run.device == nullptr) return;
  const std::uint64_t need = run.plan.tier_bytes[0], free = run.device->free_bytes();
  if (need <= free) return;
  throw OutOfMemory("tier gpu on " + run.device_text, need, free,
                    "see with nvidia-smi who holds the rest, or lower offload.gpu_limit");
}

EngineFactory shared_engine(const EngineFactory& make) {
  struct Shared {
    std::mutex mutex;
    std::shared_ptr<IoEngine> engine;
  };
  return [make, shared = std::make_shared<Shared>()](const OffloadConfig& offload) {
    const std::lock_guard lock(shared->mutex);
    if (shared->engine == nullptr) shared->engine = make(offload);
    return shared->engine;
  };
}

std::unique_ptr<IoEngine> make_offload_engine(const OffloadConfig& offload) {
  IoOptions options;
  options.queue_depth = offload.io_queue_depth;
  options.stall_seconds = offload.io_stall_seconds;
  options.on_stall = ending_stall_policy(offload.io_stall_seconds);
  return make_io_engine(offload.io_engine, options);
}

Session::Session(const RunConfig& config, PlannedRun run, const SessionOptions& options)
    : config_(config),
      run_(with_links(std::move(run), options.links)),
      stand_in_(run_.device == nullptr ? options.make_device(run_.plan) : nullptr),
      device_(stand_in_ == nullptr ? *run_.device : *stand_in_),
      links_(options.links),
      make_engine_(options.make_engine),
      point_(options.point),
      engine_(uses_nvme(run_.plan) ? make_engine_(config_.offload) : nullptr),
      memory_(
          std::make_unique<TierMemory>(device_, run_.plan.tier_bytes[0], run_.plan.tier_bytes[1])),
      control_host_(make_host_device({})),
      control_stream_(control_host_->make_stream("control")) {
  if (engine_ != nullptr) open_store();
  place_memory(run_, *memory_);  // First: registered pages stay where they are.
  if (store_ != nullptr) engine_->register_memory(host_memory());
  state_ = std::make_unique<StateAccess>(run_.program, run_.plan, device_, *memory_, store_.get());
  load(options);
  ExecutorParts parts;
  parts.device = &device_;
  parts.memory = memory_.get();
  parts.store = store_.get();
  parts.device_kernels = run_.device_kernels.get();
  parts.host_kernels = run_.host_kernels.get();
  parts.model = run_.model.get();
  parts.optimizer = run_.optimizer.get();
  parts.device_optimizer = run_.device_optimizer.get();
  if (links_ != nullptr) parts.comm = links_->data.get();
  if (run_.plan.schedule("train_save") != nullptr)
    sink_ = std::make_unique<CheckpointSink>(run_, save_memory());
  parts.sink = sink_.get();
  parts.committer = durable_.get();
  executor_ = std::make_unique<Executor>(run_.program, run_.plan, parts,
                                         with_bound_lanes(options.executor, run_.threads.get()));
}

Session::~Session() {
  executor_.reset();
  if (store_ != nullptr) engine_->unregister_memory(host_memory());
}

void Session::open_store() {
  NvmeSplit split;
  if (run_.plan.policy.versioned_state) split = split_nvme_tiles(run_);
  if (split.state.empty()) {
    store_ = make_scratch(config_, *engine_, NvmeTiles(run_.program, run_.plan).tiles());
  } else {
    store_ = open_versioned(std::move(split.state));
    if (!split.scratch.empty())
      store_ = std::make_unique<JoinedStore>(
          std::move(store_), make_scratch(config_, *engine_, std::move(split.scratch)),
          split.has_versions);
  }
  check_alignment(*store_, run_.plan);
}

std::unique_ptr<ShardStore> Session::open_versioned(std::vector<StoreTile> tiles) {
  ensure(point_ != nullptr);
  durable_ = std::make_unique<DurableRun>(config_, run_, *engine_, std::move(tiles), *point_);
  const Verify verify = config_.offload.verify_nvme ? Verify::reads : Verify::open;
  const bool all_can = !any_rank(!durable_->can_adopt());
  return all_can ? durable_->adopt(verify) : durable_->create(verify);
}

void Session::load_checkpoint(const std::string& path) {
  try {
    load_state(run_, *state_, *CheckpointReader::open(engine(), path));
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("{}. To go on from an older checkpoint, move {} away first",
                                  error.what(), path));
  }
}

void Session::load(const SessionOptions& options) {
  const bool is_adopted = durable_ != nullptr && durable_->is_adopted();
  WatchedBytes loaded(is_adopted ? held_bytes(run_, Role::weight) : held_state_bytes(run_),
                      options.on_load);
  state_->on_write([&](std::uint64_t bytes) { loaded.moved(bytes); });
  fill_state(options);
  state_->on_write({});
}

void Session::fill_state(const SessionOptions& options) {
  if (durable_ != nullptr && durable_->is_adopted())
    derive_weights(run_, *state_, control());
  else if (point_ != nullptr && point_->durable)
    load_state(run_, *state_, *open_durable_state(engine(), *point_->durable));
  else if (!options.resume.empty())
    load_checkpoint(options.resume);
  else
    load_weights(config_.model_name_or_path, run_, *state_);
}

// Whichever stores the record names hold the state: it changes when those of all ranks do.
void Session::begin_durable(const RunNote& note, std::int64_t micro_batches_per_step) {
  if (durable_ == nullptr) return;
  durable_->begin(*store_, note, micro_batches_per_step);
  any_rank(false);  // All have committed.
  if (durable_->is_adopted()) return;
  FileSystem& files = engine().file_system();
  const std::string directory = config_.output_dir.string();
  if (run_.program.rank == 0) {
    StateRecord record = read_state_record(files, directory);
    if (!record.current.id.empty()) record.others.push_back(record.current);
    record.current = durable_->stores();
    record.next = {};
    write_state_record(files, directory, record);
  }
  any_rank(false);  // It is written.
  if (point_->durable) remove_stores(files, point_->durable->stores);
}

std::optional<std::int64_t> Session::durable_step() const {
  if (durable_ == nullptr || !store_->committed_version()) return std::nullopt;
  return static_cast<std::int64_t>(*store_->committed_version());
}

void Session::end_durable() {
  if (point_ == nullptr) return;
  any_rank(false);  // All have done what they do with the state.
  FileSystem& files = engine().file_system();
  const std::string directory = config_.output_dir.string();
  StateRecord record = read_state_record(files, directory);
  const StateStores stores = std::exchange(record.current, {});
  any_rank(false);  // All have read it.
  if (run_.program.rank == 0 && !stores.id.empty()) {
    for (const StateStores& done : {stores, std::exchange(record.next, {})})
      if (!done.id.empty()) record.others.push_back(done);
    write_state_record(files, directory, record);
  }
  any_rank(false);  // It is written.
  if (durable_ != nullptr)
    store_->discard();
  else if (!stores.id.empty())
    remove_stores(files, stores);
}

IoEngine& Session::engine() {
  if (engine_ == nullptr) engine_ = make_engine_(config_.offload);
  return *engine_;
}

std::span<std::byte> Session::save_memory() const {
  const Region& buffers = run_.plan.save_buffers;
  if (buffers.bytes == 0) return {};
  return {memory_->host_address(buffers.offset), static_cast<std::size_t>(buffers.bytes)};
}

std::span<std::byte> Session::host_memory() const {
  return {memory_->host_slab().data(), memory_->host_slab().bytes()};
}

void Session::add_over_ranks(std::span<float> values) {
  if (run_.program.world == 1) return;
  links_->control->all_reduce(
      {reinterpret_cast<std::byte*>(values.data()), DType::f32, {std::ssize(values)}},
      *control_stream_);
}

void Session::gather_bytes(std::span<std::byte> own, std::span<std::byte> all) {
  if (run_.program.world == 1) {
    std::ranges::copy(own, all.begin());
    return;
  }
  links_->control->all_gather({own.data(), DType::u8, {std::ssize(own)}},
                              {all.data(), DType::u8, {std::ssize(all)}}, *control_stream_);
}

std::string Session::first_of_ranks(const std::string& text) {
  if (run_.program.world == 1) return text;
  const std::vector<std::size_t> lengths = gather_over_ranks(std::vector{text.size()});
  const std::size_t longest = *std::ranges::max_element(lengths);
  if (longest == 0) return "";
  std::vector<char> own(longest);
  text.copy(own.data(), longest);
  const std::vector<char> all = gather_over_ranks(std::move(own));
  const auto first = std::ranges::find_if(lengths, [](std::size_t length) { return length > 0; });
  const auto begin = static_cast<std::size_t>(first - lengths.begin()) * longest;
  return {&all[begin], *first};
}

Evaluation Session::evaluate(const Batches& batches, const std::function<bool()>& stops) {
  StepsInFlight<ScoreSlot> steps(*executor_);
  Evaluation total;
  const std::int64_t world = run_.program.world;
  const std::int64_t count = (batches.micro_batches_per_epoch() + world - 1) / world;
  for (std::int64_t i = 0; i < count; ++i) {
    if (stops && stops()) {
      while (steps.num_untaken() > 0) steps.take();
      executor_->drain();
      return {};
    }
    steps.next().fill(batches, i);
    total.tokens += batches.trained_tokens(i);
    if (steps.num_untaken() >= 2) total.loss += steps.take().loss;
    steps.submit("eval");
  }
  while (steps.num_untaken() > 0) total.loss += steps.take().loss;
  executor_->drain();
  if (total.tokens > 0) total.loss /= static_cast<double>(total.tokens);
  return total;
}

void Session::check_export(const std::filesystem::path& target) const {
  check_export_weights(config_, target, run_);
}

void Session::export_to(const std::filesystem::path& target, const ByteWatch& watch) {
  executor_->drain();
  export_weights(config_, target, run_, *state_, control(), watch);
}

// Of all ranks the largest of each, in place: their plans differ by a few pages.
void Session::take_largest(std::vector<TierPeak>& peaks) {
  std::vector<std::uint64_t> own;
  for (const TierPeak& peak : peaks)
    own.insert(own.end(), {peak.planned_bytes, peak.measured_bytes});
  const std::vector<std::uint64_t> all = gather_over_ranks(std::move(own));
  for (std::size_t i = 0; i < all.size(); ++i) {
    TierPeak& peak = peaks[i / 2 % peaks.size()];
    std::uint64_t& largest = i % 2 == 0 ? peak.planned_bytes : peak.measured_bytes;
    largest = std::max(largest, all[i]);
  }
}

// A GPU has no pages to ask about: what it has less of than when the run took it, which others may
// have taken too.
TierPeak Session::device_peak() {
  const std::uint64_t planned = run_.plan.tier_bytes[0];
  if (run_.device == nullptr) return {"gpu", planned, resident_bytes(memory_->device_slab())};
  const std::uint64_t at_start = device_.info().memory_bytes, free = device_.free_bytes();
  const std::uint64_t held = memory_->device_slab().bytes() + run_.workspace.bytes();
  return {"gpu", planned + run_.workspace.bytes(),
          std::max(held, at_start - std::min(at_start, free))};
}

std::vector<TierPeak> Session::peaks() {
  std::vector<TierPeak> peaks;
  peaks.push_back(device_peak());
  peaks.push_back({"cpu", run_.plan.tier_bytes[1], resident_bytes(memory_->host_slab())});
  if (store_ != nullptr)
    peaks.push_back({"nvme", run_.plan.tier_bytes[2], store_->allocated_bytes()});
  take_largest(peaks);
  return peaks;
}

std::vector<std::string> Session::notes() const {
  std::vector<std::string> notes;
  notes.push_back("device   " + (run_.device == nullptr ? device_.info().name : run_.device_text));
  if (run_.threads != nullptr) {
    for (std::string& line : run_.threads->lines()) notes.push_back(std::move(line));
  }
  if (engine_ != nullptr) notes.push_back("io       " + engine_->describe());
  if (store_ != nullptr) notes.push_back("nvme     " + store_->describe());
  return notes;
}

}  // namespace strata
