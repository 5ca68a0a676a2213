#pragma once
// A GPU for whole runs, over the fake CUDA runtime: a run on it goes the way that `strata train`
// goes on a real one. Its kernels are the host's, as work of its streams. Its memory faults where
// the host touches it, or a kernel what it has not named. It is told of what host ops touch, and
// that no lane may wait for it.
//
// Of one session, which it outlives. Thread contract: as FakeCuda.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fake_cuda/fake_cuda.hpp"
#include "strata/runtime/executor.hpp"
#include "strata/topology/topology.hpp"
#include "strata/train/planned_run.hpp"

namespace strata::testing {

// Whether the system lets host memory be registered: the session's, beside the device's own.
enum class Pinning : std::uint8_t { allowed, refused };

class FakeGpu {
 public:
  explicit FakeGpu(std::uint64_t seed = 1, Pinning pinning = Pinning::allowed);
  // The fake's call of this number fails, as FakeCudaOptions::failing_call.
  FakeGpu(std::uint64_t seed, std::uint64_t failing_call);

  // What open_rank_device() gives on a machine with GPUs.
  RankDevice open();
  // Plans a run of one rank on this machine and this GPU.
  PlannedRun plan(const RunConfig& config, Purpose purpose = Purpose::train) {
    return plan(config, read_topology(), purpose);
  }
  PlannedRun plan(const RunConfig& config, const Topology& topology,
                  Purpose purpose = Purpose::train);
  // With a watch on the host's ops, for a session with a device of open(); and on lanes that wait,
  // unless nothing is pinned, for then they must.
  ExecutorOptions watched(ExecutorOptions options = {});

  // What the fake has complained of, and what a session that has ended has not given back; empty:
  // nothing.
  std::string complaints() const;
  std::string left_over() const;  // of these, what was not given back
  std::uint64_t num_launches() const { return fake_.num_launches(); }
  std::uint64_t num_calls() const { return fake_.num_calls(); }
  // Why memory stayed pageable, once for each time it did.
  const std::vector<std::string>& pageable() const { return pageable_; }

 private:
  void host_works(const Op& op);

  const Pinning pinning_ = Pinning::allowed;
  FakeCuda fake_;
  std::vector<std::string> pageable_;
  const std::unique_ptr<Kernels> host_kernels_ = make_cpu_kernels({.num_threads = 1});
  std::span<std::byte> host_tier_;  // of the session, which pins it before all else
};

}  // namespace strata::testing
