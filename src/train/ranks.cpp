#include "strata/train/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "strata/core/error.hpp"

namespace strata {
namespace {

using Body = std::function<void(RankLinks&)>;

// What a rank ended with; empty: its work was done.
struct RankFailure {
  std::string reason;
  bool is_of_config = false;
};

// The others are ended with the reason, unless one of them failed first.
void run_rank(RankLinks& rank, const Body& body, RankFailure& failure) noexcept {
  const auto fail = [&](const char* what, bool is_of_config) {
    failure = {fmt::format("rank {}: {}", rank.control->rank(), what), is_of_config};
    rank.control->abort(failure.reason);
  };
  try {
    body(rank);
  } catch (const ConfigError& error) {
    fail(error.what(), true);
  } catch (const std::exception& error) {
    fail(error.what(), false);
  } catch (...) {
    fail("unknown exception", false);
  }
}

}  // namespace

void run_ranks(std::span<RankLinks> ranks, const Body& body) {
  ensure(!ranks.empty());
  if (ranks.front().control->world() == 1) return body(ranks.front());
  std::vector<RankFailure> failures(ranks.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 1; rank < ranks.size(); ++rank)
      threads.emplace_back([&, rank] { run_rank(ranks[rank], body, failures[rank]); });
    run_rank(ranks.front(), body, failures.front());
  }
  const std::string reason = ranks.front().control->failure();
  if (reason.empty()) return;
  const auto first = std::ranges::find(failures, reason, &RankFailure::reason);
  if (first != failures.end() && first->is_of_config) throw ConfigError(reason);
  throw Error(reason);
}

}  // namespace strata
