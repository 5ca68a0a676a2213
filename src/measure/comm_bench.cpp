#include "comm_bench.hpp"

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "strata/comm/communicator.hpp"
#include "strata/core/clock.hpp"
#include "strata/device/device.hpp"
#include "strata/measure/samples.hpp"

namespace strata {
namespace {

constexpr int barriers_per_sample = 100;
constexpr double timeout_s = 600;

// One rank's part: its views of a block that all ranks have, in bf16 as weights and contributions
// are. As in plans, a slice is gathered from its place in the whole, and reduced to another.
class CommRank {
 public:
  CommRank(Communicator& communicator, std::int64_t shard_elements)
      : communicator_(communicator),
        device_(make_host_device({})),
        stream_(device_->make_stream("comm")),
        slab_(device_->allocate(static_cast<std::uint64_t>(
            (communicator.world() + 1) * shard_elements * dtype_bytes(DType::bf16)))),
        whole_{slab_.data(), DType::bf16, {communicator.world() * shard_elements}},
        own_part_(whole_.slice(communicator.rank() * shard_elements, {shard_elements})),
        reduced_{slab_.data() + whole_.bytes(), DType::bf16, {shard_elements}} {
    device_->zero(slab_.data(), slab_.bytes(),
                  *stream_);  // what was never written is read too fast
  }

  // Rates are of the bytes that are exchanged.
  CommProfile measure(int repeats) {
    const double moved = static_cast<double>((communicator_.world() - 1) * reduced_.bytes());
    CommProfile comm;
    comm.gather_bytes_per_s =
        moved / timed(repeats, [&] { communicator_.all_gather(own_part_, whole_, *stream_); });
    comm.reduce_bytes_per_s =
        moved / timed(repeats, [&] { communicator_.reduce_scatter(whole_, reduced_, *stream_); });
    const auto barriers = [&] {
      for (int i = 0; i < barriers_per_sample; ++i) communicator_.barrier(*stream_);
    };
    comm.seconds_per_call = timed(repeats, barriers) / barriers_per_sample;
    return comm;
  }

 private:
  double timed(int repeats, const std::function<void()>& collective) {
    collective();
    Samples samples;
    for (int i = 0; i < repeats; ++i) {
      communicator_.barrier(*stream_);
      const std::int64_t begin = now_ns();
      collective();
      stream_->synchronize();
      samples.values.push_back(std::max(seconds(now_ns() - begin), 1e-9));
    }
    return samples.median();
  }

  Communicator& communicator_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  Slab slab_;
  TensorView whole_, own_part_, reduced_;
};

}  // namespace

CommProfile bench_comm(int ranks, std::uint64_t bytes, MachineBenchRun& run) {
  run.progress.begin("collectives", 1);
  const auto links = make_local_ranks(ranks, {.timeout_s = timeout_s});
  const auto shard_elements = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(bytes) / dtype_bytes(DType::bf16) / ranks);
  std::vector<std::future<CommProfile>> results;
  for (const RankLinks& rank : links)
    results.push_back(std::async(std::launch::async, [&run, shard_elements, &rank] {
      return CommRank(*rank.data, shard_elements).measure(run.repeats);
    }));
  CommProfile slowest = results.front().get();
  for (std::size_t i = 1; i < results.size(); ++i) {
    const CommProfile other = results[i].get();
    slowest.gather_bytes_per_s = std::min(slowest.gather_bytes_per_s, other.gather_bytes_per_s);
    slowest.reduce_bytes_per_s = std::min(slowest.reduce_bytes_per_s, other.reduce_bytes_per_s);
    slowest.seconds_per_call = std::max(slowest.seconds_per_call, other.seconds_per_call);
  }
  return slowest;
}

}  // namespace strata
