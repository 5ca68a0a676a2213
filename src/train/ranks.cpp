#include "strata/train/ranks.hpp"

#include <fmt/format.h>

#include <exception>
#include <thread>

#include "strata/core/error.hpp"

namespace strata {
namespace {

using Body = std::function<void(RankLinks&)>;

// The others are ended with the reason, unless one of them failed first.
void run_rank(RankLinks& rank, const Body& body) noexcept {
  try {
    body(rank);
  } catch (const std::exception& error) {
    rank.control->abort(fmt::format("rank {}: {}", rank.control->rank(), error.what()));
  } catch (...) {
    rank.control->abort(fmt::format("rank {}: unknown exception", rank.control->rank()));
  }
}

}  // namespace

void run_ranks(std::span<RankLinks> ranks, const Body& body) {
  ensure(!ranks.empty());
  if (ranks.front().control->world() == 1) return body(ranks.front());
  {
    std::vector<std::jthread> threads;
    for (RankLinks& rank : ranks.subspan(1))
      threads.emplace_back([&rank, &body] { run_rank(rank, body); });
    run_rank(ranks.front(), body);
  }
  const std::string reason = ranks.front().control->failure();
  if (!reason.empty()) throw Error(reason);
}

}  // namespace strata
