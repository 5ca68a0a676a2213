#pragma once
// A Session is one model placed by its Plan in real memory and ready to run: the tiers, the state
// in them and the executor. Thread contract: one thread.

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/comm/communicator.hpp"
#include "strata/core/byte_watch.hpp"
#include "strata/data/batches.hpp"
#include "strata/device/device.hpp"
#include "strata/io/store/shard_store.hpp"
#include "strata/memory/tier_memory.hpp"
#include "strata/runtime/executor.hpp"
#include "strata/runtime/state_access.hpp"
#include "strata/train/durable_state.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

struct Evaluation {
  double loss = 0;          // mean over trained tokens
  std::int64_t tokens = 0;  // trained tokens
};

// Planned and measured bytes of one tier.
struct TierPeak {
  std::string tier;
  std::uint64_t planned_bytes = 0, measured_bytes = 0;
};

// Makes the engine that serves a run's NVMe tier: for ranks of one process, the same one.
using EngineFactory = std::function<std::shared_ptr<IoEngine>(const OffloadConfig&)>;
// The engine the config names; a drive that stalls for too long ends the process (StallPolicy).
std::unique_ptr<IoEngine> make_offload_engine(const OffloadConfig& offload);

// Makes the device that a plan runs on where the run has no GPU.
using DeviceFactory = std::function<std::unique_ptr<Device>(const Plan&)>;
// The host standing in for a GPU.
std::unique_ptr<Device> make_run_device(const Plan& plan);
// Throws OutOfMemory when the available RAM does not hold tier cpu of that many ranks alike, tier
// gpu where the host stands in for one, the buffers that each has beside them while it loads or
// saves, and what the host keeps in reserve.
void check_host_memory(const PlannedRun& run, int num_host_ranks, std::uint64_t available);
// Throws OutOfMemory when the run's GPU, if it has one, no longer has its tier's memory free.
void check_device_memory(const PlannedRun& run);

// Gives every caller, on any thread, the one engine that `make` makes.
EngineFactory shared_engine(const EngineFactory& make);

struct SessionOptions {
  ExecutorOptions executor = {};
  EngineFactory make_engine = make_offload_engine;
  DeviceFactory make_device = make_run_device;
  RankLinks* links = nullptr;  // to the other ranks; outlive the session. Null: there are none
  std::string resume = {};     // the checkpoint that the state comes from; empty: the model folder
  // Of a run with a versioned state, or that goes on from one; outlives the session. Null: neither.
  const ResumePoint* point = nullptr;
  ByteWatch on_load = {};  // bytes of this rank's state that are at their homes
};

class CheckpointSink;
class DurableRun;

class Session {
 public:
  // Reserves every tier, then loads the weights, derives the master from them and clears the
  // moments. Throws ConfigError when the plan is for other ranks than the links join.
  Session(const RunConfig& config, PlannedRun run, const SessionOptions& options = {});
  ~Session();

  const PlannedRun& run() const { return run_; }
  Executor& executor() { return *executor_; }
  StateAccess& state() { return *state_; }
  // Takes what steps of "train_save" hand over; null: the plan has no such schedule.
  CheckpointSink* sink() { return sink_.get(); }
  // The plan's save buffers; empty: it has none.
  std::span<std::byte> save_memory() const;

  // Whether any rank asks for each of these; the same answers on all. Every rank must call it.
  template <std::size_t N>
  std::array<bool, N> any_rank(const std::array<bool, N>& asks) {
    std::array<float, N> votes{};
    std::ranges::copy(asks, votes.begin());
    add_over_ranks(votes);
    std::array<bool, N> answers{};
    std::ranges::transform(votes, answers.begin(), [](float sum) { return sum > 0; });
    return answers;
  }
  bool any_rank(bool asks) { return any_rank(std::array{asks})[0]; }
  // The first of the ranks' texts, by rank, that is not empty, cut to 1 KiB; the same on all. Every
  // rank must call it.
  std::string first_of_ranks(const std::string& text);
  // As many elements of every rank, by rank. Every rank must call it.
  template <typename T>
  requires std::is_trivially_copyable_v<T> std::vector<T> gather_over_ranks(std::vector<T> own) {
    std::vector<T> all(own.size() * static_cast<std::size_t>(run_.program.world));
    gather_bytes(std::as_writable_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
    return all;
  }
  // What serves files beside the tiers: the engine of the NVMe tier, if there is one.
  IoEngine& engine();
  // Mean loss over one pass of `batches`, all ranks' together. Before each micro-batch all ranks
  // ask whether it stops there, which they answer alike: then there are no tokens. Empty: it does
  // not. Drains the executor.
  Evaluation evaluate(const Batches& batches, const std::function<bool()>& stops = {});
  // Throws what export_to would throw before it writes: the target exists, or the space does not
  // suffice.
  void check_export(const std::filesystem::path& target) const;
  // Writes a Hugging Face folder of the current weights. Drains the executor. Every rank must call
  // it; the first writes, and tells `watch` of the bytes of weights.
  void export_to(const std::filesystem::path& target, const ByteWatch& watch = {});
  // Of a run with a versioned state; else they do nothing. Every rank must call them.
  // Before the first step: where the run stands, and the micro-batches of a step on all ranks. What
  // was loaded is committed, and is the state of the output folder's run from then on.
  void begin_durable(const RunNote& note, std::int64_t micro_batches_per_step);
  // The last committed step on this rank; the executor is drained.
  std::optional<std::int64_t> durable_step() const;
  // The run is done: whatever state the output folder's stores hold is removed with the session.
  void end_durable();

  // What the run has touched of each tier so far, against the plan; without a tier that cannot be
  // looked at. The most of any rank: every rank must call it.
  std::vector<TierPeak> peaks();
  // Lines for the log: device, I/O engine, drives and what is not as asked.
  std::vector<std::string> notes() const;

 private:
  void open_store();
  std::unique_ptr<ShardStore> open_versioned(std::vector<StoreTile> tiles);
  void load(const SessionOptions& options);
  void load_checkpoint(const std::string& path);
  void fill_state(const SessionOptions& options);
  Communicator* control() const { return links_ == nullptr ? nullptr : links_->control.get(); }
  std::span<std::byte> host_memory() const;
  void gather_bytes(std::span<std::byte> own, std::span<std::byte> all);
  void add_over_ranks(std::span<float> values);
  void take_largest(std::vector<TierPeak>& peaks);
  TierPeak device_peak();

  const RunConfig config_;
  PlannedRun run_;
  std::unique_ptr<Device> stand_in_;  // null: the run has a GPU
  Device& device_;
  RankLinks* links_;
  const EngineFactory make_engine_;
  const ResumePoint* point_;
  std::shared_ptr<IoEngine> engine_;     // null until somebody needs one
  std::unique_ptr<DurableRun> durable_;  // null: the state has no versions
  std::unique_ptr<ShardStore> store_;
  std::unique_ptr<TierMemory> memory_;
  std::unique_ptr<StateAccess> state_;
  // Of the host, whatever computes: links among ranks carry what the host has.
  std::unique_ptr<Device> control_host_;
  std::unique_ptr<Stream> control_stream_;
  std::unique_ptr<CheckpointSink> sink_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace strata
