#pragma once
// NCCL between ranks that have a GPU each: threads of one process, or of several that another line
// joins (docs/design/nccl.md). NCCL moves bytes alone: sums are taken in rank order on the device,
// so the bits are those of every other carrier.
//
// NCCL is a library of the machine, loaded when the first job starts: the program runs where there
// is none. A build without its header has nccl_absent.cpp in its place.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "strata/comm/communicator.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/tensor_view.hpp"
#include "strata/device/device.hpp"

namespace strata {

struct NcclFacts {
  bool is_built = true;  // this build can use NCCL
  std::string version;   // of the library: "2.28.9"; empty: there is none to use
  std::string failure;   // why; empty: there is
};
// Loads the library. Never throws for what is missing: that is `failure`.
NcclFacts read_nccl();

// total = terms[0] + terms[1] + ..., in this order, on the stream: what Communicator says of sums.
using DeviceSum =
    std::function<void(std::span<const TensorView> terms, TensorView total, Stream& stream)>;

// What a rank holds of device memory for the others' values of a sum. Less works too, from 256
// bytes per rank on, in more and smaller messages.
inline constexpr std::uint64_t nccl_staging_bytes = 64 * MiB;
inline constexpr int nccl_ranks_max = 256;  // terms of one sum

struct NcclRankOptions {
  std::span<std::byte> staging = {};  // of the device, the communicator's while it lives
  DeviceSum sum = {};
  double timeout_s = 1800;  // for NCCL to join the ranks, and to carry out what all have come to
  double watch_s = 0.02;    // how often the job and NCCL are asked whether they have failed
  double soon_s = 0.25;     // for what all had come to when the job failed to end well on all
};

// NCCL of this process, from start to end. Destroyed, it waits for the ranks of all processes to
// leave, unless the job has failed. Thread contract: made and destroyed by one thread, join() from
// the ranks' own.
class NcclJob {
 public:
  // One rank needs no library. Throws ConfigError where there is none: it says which file was
  // looked for, what the loader said and what to install.
  static std::unique_ptr<NcclJob> start(int world);
  virtual ~NcclJob() = default;
  virtual std::string version() const = 0;  // "2.28.9"; empty: not loaded

  // Called by every rank alike, on a thread that runs it; returns when all have joined. From now on
  // NCCL carries the values of `links.data`, whose ranks meet as they did before; `control` stays
  // as it is, and brings NCCL's ranks together. Views then lie in memory of `device`, and
  // collectives complete on its streams: who waits for one calls confirm() before it takes what
  // came. What fails here fails the job.
  //
  // This job, the device and what is behind the links outlive the rank's communicator: so
  // links.data is given up before they are.
  virtual void join(RankLinks& links, Device& device, const NcclRankOptions& options) = 0;
};

}  // namespace strata
