#include "bench/paced/paced_links.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "strata/core/clock.hpp"

namespace strata::bench {

Arrivals::Arrivals(int world)
    : even_(static_cast<std::size_t>(world)), odd_(static_cast<std::size_t>(world)) {}

void Arrivals::came(int rank, std::int64_t collective) {
  OfRanks& of_ranks = collective % 2 == 0 ? even_ : odd_;
  of_ranks[static_cast<std::size_t>(rank)] = now_ns();
}

std::int64_t Arrivals::last_ns(std::int64_t collective) const {
  return *std::ranges::max_element(collective % 2 == 0 ? even_ : odd_);
}

PacedCommunicator::PacedCommunicator(std::unique_ptr<Communicator> real,
                                     std::shared_ptr<Arrivals> arrivals, const LinkRates& rates)
    : real_(std::move(real)), arrivals_(std::move(arrivals)), rates_(rates) {}

template <typename Collective>
void PacedCommunicator::paced(std::int64_t bytes, double bytes_per_s,
                              const Collective& collective) {
  const std::int64_t number = num_paced_++;
  arrivals_->came(rank(), number);
  collective();
  const double seconds = static_cast<double>(bytes) / bytes_per_s;
  const std::int64_t end = arrivals_->last_ns(number) + static_cast<std::int64_t>(1e9 * seconds);
  if (const std::int64_t left = end - now_ns(); left > 0)
    std::this_thread::sleep_for(std::chrono::nanoseconds(left));
}

void PacedCommunicator::all_gather(TensorView shard, TensorView gathered, Stream& stream) {
  paced(gathered.bytes() - shard.bytes(), rates_.gather_bytes_per_s,
        [&] { real_->all_gather(shard, gathered, stream); });
}

void PacedCommunicator::reduce_scatter(TensorView full, TensorView shard, Stream& stream) {
  paced(full.bytes() - shard.bytes(), rates_.reduce_bytes_per_s,
        [&] { real_->reduce_scatter(full, shard, stream); });
}

void PacedCommunicator::all_reduce(TensorView values, Stream& stream) {
  real_->all_reduce(values, stream);
}

void PacedCommunicator::broadcast(TensorView values, int root, Stream& stream) {
  real_->broadcast(values, root, stream);
}

void PacedCommunicator::send(TensorView values, int from, int to, Stream& stream) {
  real_->send(values, from, to, stream);
}

void PacedCommunicator::barrier(Stream& stream) { real_->barrier(stream); }

std::vector<RankLinks> make_paced_ranks(int world, const LinkRates& rates) {
  const auto arrivals = std::make_shared<Arrivals>(world);
  std::vector<RankLinks> ranks = make_local_ranks(world);
  for (RankLinks& rank : ranks)
    rank.data = std::make_unique<PacedCommunicator>(std::move(rank.data), arrivals, rates);
  return ranks;
}

}  // namespace strata::bench
