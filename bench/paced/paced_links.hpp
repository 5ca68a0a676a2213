#pragma once
// Communicators around real ones, joined by links of stated rates: a collective is over when the
// real one is and such links, from the moment that the last rank came, would be. Burns no CPU.
//
// Thread contract: as Communicator's.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "strata/comm/communicator.hpp"

namespace strata::bench {

struct LinkRates {
  double gather_bytes_per_s = 0, reduce_bytes_per_s = 0;
};

// When each rank came to the collective under way. A rank that is done with one may come to the
// next while others still ask about it, but not to the one after that.
class Arrivals {
 public:
  explicit Arrivals(int world);
  void came(int rank, std::int64_t collective);
  // Once all have come.
  std::int64_t last_ns(std::int64_t collective) const;

 private:
  using OfRanks = std::vector<std::atomic<std::int64_t>>;
  OfRanks even_, odd_;
};

class PacedCommunicator final : public Communicator {
 public:
  PacedCommunicator(std::unique_ptr<Communicator> real, std::shared_ptr<Arrivals> arrivals,
                    const LinkRates& rates);

  int rank() const override { return real_->rank(); }
  int world() const override { return real_->world(); }
  void all_gather(TensorView shard, TensorView gathered, Stream& stream) override;
  void reduce_scatter(TensorView full, TensorView shard, Stream& stream) override;
  void all_reduce(TensorView values, Stream& stream) override;
  void broadcast(TensorView values, int root, Stream& stream) override;
  void send(TensorView values, int from, int to, Stream& stream) override;
  void barrier(Stream& stream) override;
  std::uint64_t bytes_exchanged() const override { return real_->bytes_exchanged(); }
  void abort(const std::string& reason) noexcept override { real_->abort(reason); }
  std::string failure() const override { return real_->failure(); }

 private:
  template <typename Collective>
  void paced(std::int64_t bytes, double bytes_per_s, const Collective& collective);

  const std::unique_ptr<Communicator> real_;
  const std::shared_ptr<Arrivals> arrivals_;
  const LinkRates rates_;
  std::int64_t num_paced_ = 0;
};

// The ranks of this process, their data lines paced.
std::vector<RankLinks> make_paced_ranks(int world, const LinkRates& rates);

}  // namespace strata::bench
