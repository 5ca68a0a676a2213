#include "sim/fake_gpu.hpp"

#include <array>

#include "fake_cuda/streamed_kernels.hpp"
#include "src/device/cuda/cuda_device.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

constexpr std::uint64_t workspace_bytes = MiB;

FakeCudaOptions options_of(std::uint64_t seed, std::optional<std::uint64_t> failing_call = {}) {
  FakeCudaOptions options;
  options.seed = seed;
  options.host_touch = HostTouch::faults;
  options.failing_call = failing_call;
  return options;
}

// Of one rank.
bool is_for_the_device(const Op& op) {
  switch (op.kind) {
    case OpKind::feed:
    case OpKind::copy:
    case OpKind::run:
      return true;
    case OpKind::accumulate:
    case OpKind::square:
    case OpKind::update:
      return op.lane == Lane::compute;
    default:
      return false;
  }
}

}  // namespace

FakeGpu::FakeGpu(std::uint64_t seed, Pinning pinning)
    : pinning_(pinning), fake_(options_of(seed)) {}

FakeGpu::FakeGpu(std::uint64_t seed, std::uint64_t failing_call)
    : fake_(options_of(seed, failing_call)) {}

RankDevice FakeGpu::open() {
  RankDevice rank;
  CudaDeviceOptions options;
  options.place_pinned = [this](std::span<std::byte> memory) {
    if (host_tier_.empty()) host_tier_ = memory;
    if (pinning_ == Pinning::refused) fake_.refuse_pinning(memory);
  };
  options.on_pageable = [this](const std::string& why) { pageable_.push_back(why); };
  rank.device = make_cuda_device(fake_, 1, options);
  rank.workspace = rank.device->allocate(workspace_bytes);
  rank.kernels = make_streamed_kernels(fake_, *host_kernels_);
  rank.description = "Fake GPU, GPU 1";
  rank.near_nodes = {0};
  return rank;
}

PlannedRun FakeGpu::plan(const RunConfig& config, const Topology& topology, Purpose purpose) {
  RankDevice rank = open();
  const TierLimits limits = rank_limits(
      config, purpose, topology, 1, device_limit(config, std::array{rank.device->free_bytes()}));
  return plan_run(config, purpose, topology, {}, limits, std::move(rank));
}

ExecutorOptions FakeGpu::watched(ExecutorOptions options) {
  options.before_op = [this, also = options.before_op](const Op& op) {
    if (!is_for_the_device(op)) host_works(op);
    if (also) also(op);
  };
  if (pinning_ == Pinning::refused) return options;
  options.on_lane_start = [this](Lane lane) { fake_.forbid_waiting(std::string(lane_name(lane))); };
  return options;
}

void FakeGpu::host_works(const Op& op) {
  const std::string what =
      std::string(op_kind_name(op.kind)) + " on lane " + std::string(lane_name(op.lane));
  for (const Operand& operand : op.operands) {
    const Region& region = operand.region;
    if (region.tier == Tier::device) throw Error(what + " is the host's, on the device's memory");
    if (region.tier != Tier::host) continue;
    fake_.host_touches({host_tier_.data() + region.offset, region.bytes,
                        operand.access == Access::read ? Touch::reads : Touch::writes},
                       what);
  }
}

std::string FakeGpu::complaints() const {
  std::string text;
  for (const std::string& complaint : fake_.complaints()) text += complaint + "\n";
  return text + left_over();
}

std::string FakeGpu::left_over() const {
  std::string text;
  for (const std::string& leak : fake_.leaks()) text += "left over: " + leak + "\n";
  return text;
}

}  // namespace strata::testing
