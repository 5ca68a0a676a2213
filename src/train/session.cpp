#include "strata/train/session.hpp"

#include <fmt/format.h>

#include <array>

#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"
#include "train/drain_guard.hpp"
#include "train/weights_io.hpp"

namespace strata {
namespace {

std::unique_ptr<IoEngine> make_engine(const RunConfig& config, const Plan& plan) {
  if (plan.drive_bytes.empty()) return nullptr;
  IoOptions options;
  options.queue_depth = config.offload.io_queue_depth;
  return make_io_engine(config.offload.io_engine, options);
}

std::unique_ptr<TileStore> make_store(const RunConfig& config, const Plan& plan, IoEngine* engine) {
  if (engine == nullptr) return nullptr;
  std::vector<DriveExtent> drives;
  for (std::size_t i = 0; i < plan.drive_bytes.size(); ++i)
    drives.push_back({config.offload.nvme_paths[i], plan.drive_bytes[i]});
  auto store = std::make_unique<TileStore>(*engine, drives);
  if (store->alignment() > plan.limits.io_alignment)
    throw ConfigError(fmt::format(
        "a drive of offload.nvme_paths wants direct I/O aligned to {} bytes; the plan aligns to {}",
        store->alignment(), plan.limits.io_alignment));
  return store;
}

// Both "gpu" and "cpu" are RAM when the host stands in for the device.
void check_host(const Plan& plan) {
  const std::uint64_t need = plan.tier_bytes[0] + plan.tier_bytes[1];
  const std::uint64_t available = read_topology().available_memory_bytes;
  if (need > available)
    throw OutOfMemory(
        "tiers gpu and cpu together (the host stands in for the GPU)", need, available,
        "move more to nvme, or lower offload.gpu_limit and offload.cpu_limit to see what fits");
}

std::unique_ptr<Device> make_device(const Plan& plan) {
  check_host(plan);
  return make_host_device({.memory_bytes = plan.limits.device_bytes});
}

}  // namespace

Session::Session(const RunConfig& config, PlannedRun run, const ExecutorOptions& options)
    : config_(config),
      run_(std::move(run)),
      device_(make_device(run_.plan)),
      engine_(make_engine(config_, run_.plan)),
      store_(make_store(config_, run_.plan, engine_.get())),
      memory_(std::make_unique<TierMemory>(*device_, run_.plan.tier_bytes[0],
                                           run_.plan.tier_bytes[1])) {
  if (engine_ != nullptr) engine_->register_memory(host_memory());
  state_ = std::make_unique<StateAccess>(run_.program, run_.plan, *device_, *memory_, store_.get());
  load_weights(config_.model_name_or_path, run_, *state_);
  ExecutorParts parts;
  parts.device = device_.get();
  parts.memory = memory_.get();
  parts.store = store_.get();
  parts.device_kernels = run_.device_kernels.get();
  parts.host_kernels = run_.host_kernels.get();
  parts.model = run_.model.get();
  parts.optimizer = run_.optimizer.get();
  parts.device_optimizer = run_.device_optimizer.get();
  executor_ = std::make_unique<Executor>(run_.program, run_.plan, parts, options);
}

Session::~Session() {
  executor_.reset();
  if (engine_ != nullptr) engine_->unregister_memory(host_memory());
}

std::span<std::byte> Session::host_memory() const {
  return {memory_->host_slab().data(), memory_->host_slab().bytes()};
}

Evaluation Session::evaluate(const Batches& batches, const std::atomic<bool>* stop) {
  std::array<StepArgs, 3> args;  // two in flight and one being filled
  std::array<std::vector<std::int32_t>, 3> inputs;
  const DrainGuard guard(*executor_);
  Evaluation total;
  const std::int64_t count = batches.micro_batches_per_epoch();
  std::int64_t taken = 0;
  const auto take = [&] { total.loss += executor_->wait_result().loss, ++taken; };
  for (std::int64_t i = 0; i < count; ++i) {
    if (stop != nullptr && *stop) return {};
    auto& input = inputs[static_cast<std::size_t>(i % 3)];
    input.resize(static_cast<std::size_t>(3 * batches.tokens_per_micro_batch()));
    total.tokens += batches.fill(i, input);
    StepArgs& a = args[static_cast<std::size_t>(i % 3)];
    a.index = i;
    a.inputs = {std::as_bytes(std::span(input))};
    a.loss_scale = 1.0;
    if (i - taken >= 2) take();
    executor_->submit("eval", a);
  }
  while (taken < count) take();
  executor_->drain();
  if (total.tokens > 0) total.loss /= static_cast<double>(total.tokens);
  return total;
}

void Session::check_export(const std::filesystem::path& target) const {
  check_export_weights(config_.model_name_or_path, target, run_);
}

void Session::export_to(const std::filesystem::path& target) {
  executor_->drain();
  export_weights(config_.model_name_or_path, target, run_, *state_);
}

std::vector<TierPeak> Session::peaks() const {
  std::vector<TierPeak> peaks;
  peaks.push_back({"gpu", run_.plan.tier_bytes[0], resident_bytes(memory_->device_slab())});
  peaks.push_back({"cpu", run_.plan.tier_bytes[1], resident_bytes(memory_->host_slab())});
  if (store_ != nullptr)
    peaks.push_back({"nvme", run_.plan.tier_bytes[2], store_->allocated_bytes()});
  return peaks;
}

std::vector<std::string> Session::notes() const {
  std::vector<std::string> notes;
  notes.push_back("device   " + device_->info().name);
  if (engine_ != nullptr) notes.push_back("io       " + engine_->describe());
  if (store_ != nullptr) notes.push_back("nvme     " + store_->describe());
  return notes;
}

}  // namespace strata
