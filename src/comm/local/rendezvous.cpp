#include "rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {
namespace {

std::string describe(const CollectiveCall& call) {
  if (call.kind == Collective::barrier) return "barrier";
  std::string text = fmt::format("{} of {} {}", collective_name(call.kind), call.source.count(),
                                 dtype_name(call.source.dtype));
  if (call.kind == Collective::broadcast) text += fmt::format(" from rank {}", call.root);
  return text;
}

bool agree(const CollectiveCall& left, const CollectiveCall& right) {
  return left.kind == right.kind && left.source.dtype == right.source.dtype &&
         left.source.count() == right.source.count() && left.root == right.root;
}

}  // namespace

std::string_view collective_name(Collective collective) {
  switch (collective) {
    case Collective::all_gather:
      return "all_gather";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::broadcast:
      return "broadcast";
    case Collective::send:
      return "send";
    case Collective::barrier:
      return "barrier";
  }
  return "unknown";
}

Rendezvous::Rendezvous(int world, double timeout_s)
    : world_(world),
      timeout_s_(timeout_s),
      calls_(static_cast<std::size_t>(world)),
      here_(static_cast<std::size_t>(world)),
      withdrawn_(static_cast<std::size_t>(world)) {}

void Rendezvous::enter(int rank, const CollectiveCall& call) {
  Lock lock(mutex_);
  const std::int64_t before = collectives_begun_;
  if (!failure_.empty()) throw_failure(rank, call.kind);
  calls_[static_cast<std::size_t>(rank)] = call;
  here_[static_cast<std::size_t>(rank)] = true;
  if (++num_here_ == world_) {
    match();
  } else {
    wait_for_all(rank, lock);
  }
  if (collectives_begun_ == before) throw_failure(rank, call.kind);
}

// By the last rank to come, so every rank sees the same verdict.
void Rendezvous::match() {
  const auto odd = std::ranges::find_if(
      calls_, [&](const CollectiveCall& call) { return !agree(call, calls_.front()); });
  if (odd != calls_.end()) {
    return fail(fmt::format("rank {} called {} where rank 0 called {}", odd - calls_.begin(),
                            describe(*odd), describe(calls_.front())));
  }
  here_.assign(here_.size(), false);
  num_here_ = 0;
  ++collectives_begun_;
  changed_.notify_all();
}

void Rendezvous::wait_for_all(int rank, Lock& lock) {
  const Collective kind = calls_[static_cast<std::size_t>(rank)].kind;
  if (const auto left = std::ranges::find(withdrawn_, true); left != withdrawn_.end()) {
    return fail(fmt::format("rank {} has left, rank {} waits for it in {}",
                            left - withdrawn_.begin(), rank, collective_name(kind)));
  }
  const auto is_over = [&, before = collectives_begun_] {
    return collectives_begun_ != before || !failure_.empty();
  };
  if (changed_.wait_for(lock, std::chrono::duration<double>(timeout_s_), is_over)) return;
  fail(fmt::format("{} did not come to {} within {} s", absent_ranks(), collective_name(kind),
                   timeout_s_));
}

// Untimed: a rank between enter() and leave() only copies or adds, and its peers' memory must stay
// until it has.
void Rendezvous::leave() {
  Lock lock(mutex_);
  const std::int64_t before = collectives_done_;
  if (++num_done_ < world_) return changed_.wait(lock, [&] { return collectives_done_ != before; });
  num_done_ = 0;
  ++collectives_done_;
  changed_.notify_all();
}

void Rendezvous::withdraw(int rank) {
  const Lock lock(mutex_);
  withdrawn_[static_cast<std::size_t>(rank)] = true;
  const auto waiting = std::ranges::find(here_, true);
  if (waiting == here_.end()) return;
  const Collective kind = calls_[static_cast<std::size_t>(waiting - here_.begin())].kind;
  fail(fmt::format("rank {} left while rank {} waited for it in {}", rank, waiting - here_.begin(),
                   collective_name(kind)));
}

void Rendezvous::abort(const std::string& reason) {
  const Lock lock(mutex_);
  fail(reason);
}

std::string Rendezvous::failure() const {
  const Lock lock(mutex_);
  return failure_;
}

void Rendezvous::fail(std::string reason) {
  if (failure_.empty()) failure_ = std::move(reason);
  changed_.notify_all();
}

std::string Rendezvous::absent_ranks() const {
  std::string names;
  for (std::size_t rank = 0; rank < here_.size(); ++rank) {
    if (!here_[rank]) names += fmt::format("{}rank {}", names.empty() ? "" : ", ", rank);
  }
  return names;
}

void Rendezvous::throw_failure(int rank, Collective kind) const {
  throw Error(
      fmt::format("{} on rank {} of {} failed: {}", collective_name(kind), rank, world_, failure_));
}

}  // namespace strata
