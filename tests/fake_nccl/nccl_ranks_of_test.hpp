#pragma once
// Ranks over the fake of NCCL, each with a device of one fake CUDA, for tests that hold their
// values in host memory: a collective copies them to the device and back, and is complete when it
// returns.

#include <cstdint>
#include <functional>
#include <memory>

#include "fake_nccl/fake_nccl.hpp"
#include "src/comm/nccl/nccl_job.hpp"
#include "strata/comm/nccl.hpp"

namespace strata::testing {

// The sum over ranks as work of a stream of the fake, with the host's bits.
DeviceSum make_streamed_sum(FakeCuda& cuda);

struct NcclTestOptions {
  FakeNcclOptions nccl = {};
  FakeCudaOptions cuda = {};
  std::uint64_t staging_bytes_per_rank = 4096;  // little, so that sums come in many chunks
  double soon_s = 0.25;
  // Of what is under way on the devices: whoever waits for anything else waits a minute.
  std::function<std::int64_t()> clock = &now_ns;
};

// What the ranks of a job share: machine, library and job.
class NcclMachine {
 public:
  NcclMachine(int world, const NcclTestOptions& options);

  FakeCuda& cuda() { return cuda_; }
  FakeNccl& nccl() { return nccl_; }
  // On the rank's thread. Its data line then takes values of host memory. Ends with the rank.
  void join(RankLinks& links);
  void end() { job_.reset(); }  // when no rank is left

 private:
  const NcclTestOptions options_;
  FakeCuda cuda_;
  FakeNccl nccl_;
  std::unique_ptr<NcclJob> job_;
};

}  // namespace strata::testing
