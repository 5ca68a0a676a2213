#pragma once
// A toy rank on a CUDA device over the fake runtime: its model, its kernels and, where updates are
// the device's, its optimizer are work of streams.

#include <memory>

#include "fake_cuda/fake_cuda.hpp"
#include "fake_cuda/streamed_kernels.hpp"
#include "fake_cuda/streamed_toy.hpp"
#include "src/device/cuda/cuda_device.hpp"
#include "strata/kernels/kernels.hpp"
#include "support/toy_model.hpp"
#include "support/toy_run.hpp"

namespace strata::testing {

class CudaToy {
 public:
  explicit CudaToy(const FakeCudaOptions& options)
      : CudaToy(std::make_shared<FakeCuda>(options), 1) {}
  // One of several devices of a machine.
  CudaToy(std::shared_ptr<FakeCuda> machine, int ordinal)
      : machine_(std::move(machine)), device_(make_cuda_device(fake_, ordinal, {})) {}

  FakeCuda& fake() { return fake_; }
  Device& device() { return *device_; }
  ToyHardware hardware() { return {device_.get(), kernels_.get(), &model_, &optimizer_}; }

  // The fake is told of what the host touches, and that no lane waits for the device.
  Trajectory train(const Program& program, const Plan& plan, IoEngine* engine,
                   ToyRunOptions options) {
    ToyRank* running = nullptr;
    options.executor.before_op = [&](const Op& op) {
      if (runs_on_host(op)) touch(op, running->memory());
    };
    options.executor.on_lane_start = [this](Lane lane) {
      fake_.forbid_waiting(std::string(lane_name(lane)));
    };
    ToyRank rank(program, plan, engine, nullptr, options.executor, hardware());
    running = &rank;
    return rank.train(options);
  }

 private:
  static bool runs_on_host(const Op& op) {
    return is_nvme_lane(op.lane) || op.lane == Lane::update || op.lane == Lane::save;
  }
  void touch(const Op& op, const TierMemory& memory) {
    for (const Operand& operand : op.operands)
      if (operand.region.tier == Tier::host)
        fake_.host_touches(
            {memory.host_address(operand.region.offset), operand.region.bytes,
             operand.access == Access::read ? Touch::reads : Touch::writes},
            std::string(op_kind_name(op.kind)) + " on lane " + std::string(lane_name(op.lane)));
  }

  const std::shared_ptr<FakeCuda> machine_;
  FakeCuda& fake_ = *machine_;
  const std::unique_ptr<Device> device_;
  ToyModel host_model_;
  ToyOptimizer host_optimizer_;
  const std::unique_ptr<Kernels> host_kernels_ = make_ref_kernels();
  const std::unique_ptr<Kernels> kernels_ = make_streamed_kernels(fake_, *host_kernels_);
  StreamedModel model_{fake_, host_model_};
  StreamedOptimizer optimizer_{fake_, host_optimizer_};
};

}  // namespace strata::testing
