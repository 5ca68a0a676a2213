#include "mpi_endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {
namespace {

// MPI counts bytes in an int.
constexpr std::size_t message_bytes_max = std::size_t{1} << 30;

// Calls `move` with the bytes of each message, and the request it becomes.
template <typename Bytes, typename Move>
bool in_messages(int peer, Bytes bytes, Transfers& transfers, const Move& move) {
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), message_bytes_max);
    transfers.requests.push_back(MPI_REQUEST_NULL);
    transfers.peers.push_back(peer);
    if (!move(bytes.first(count), transfers.requests.back())) return false;
    bytes = bytes.subspan(count);
  }
  return true;
}

}  // namespace

MpiEndpoint::MpiEndpoint(std::shared_ptr<MpiWorld> world, MpiLine line, int rank)
    : world_(std::move(world)),
      line_(line),
      rank_(rank),
      calls_(as_index(num_ranks())),
      taken_(as_index(num_ranks())) {
  headers_.requests.assign(2 * as_index(num_ranks()), MPI_REQUEST_NULL);
  for (int peer = 0; peer < num_ranks(); ++peer)
    headers_.peers.insert(headers_.peers.end(), {peer, peer});
  open_mailboxes();
}

void MpiEndpoint::open_mailboxes() {
  for (int from = 0; from < num_ranks(); ++from) {
    if (from == rank_) continue;
    const auto bytes = std::as_writable_bytes(std::span(&taken_[as_index(from)], 1));
    MPI_Request& request = headers_.requests[2 * as_index(from)];
    if (!world_->start_receive({line_, MessageKind::header, from, rank_}, bytes, request))
      throw_failure();
  }
}

// To the next rank first, so that not all knock at rank 0's door at once.
void MpiEndpoint::give(const CallHeader& header) {
  given_ = header;
  for (int step = 1; step < num_ranks(); ++step) {
    const int to = (rank_ + step) % num_ranks();
    MPI_Request& request = headers_.requests[2 * as_index(to) + 1];
    if (!world_->start_send({line_, MessageKind::header, rank_, to},
                            std::as_bytes(std::span(&given_, 1)), request))
      throw_failure();
  }
}

void MpiEndpoint::meet(const CallHeader& call) {
  phase_ = Phase::meeting;
  is_late_told_ = false;
  CallHeader& own = calls_[as_index(rank_)] = call;
  own.sequence = num_calls_++;
  if (world_->has_failed()) throw_failure();
  give(own);
  patience_.restart();
  wait(headers_, [&](int index) {
    if (index % 2 == 0) take_header(index / 2);
  });
  if (const auto text = mismatch(calls_)) {
    world_->fail(*text);
    throw_failure();
  }
  open_mailboxes();
  phase_ = Phase::moving;
}

void MpiEndpoint::take_header(int from) {
  const CallHeader& header = calls_[as_index(from)] = taken_[as_index(from)];
  if (!header.is_leaving) return;
  world_->fail(fmt::format("rank {} has left, rank {} waits for it in {}", from, rank_,
                           describe(calls_[as_index(rank_)])));
  throw_failure();
}

void MpiEndpoint::send(int to, std::span<const std::byte> bytes, Transfers& transfers) {
  const MessageAddress address{line_, MessageKind::values, rank_, to};
  const auto start = [&](std::span<const std::byte> message, MPI_Request& request) {
    return world_->start_send(address, message, request);
  };
  if (!in_messages(to, bytes, transfers, start)) throw_failure();
}

void MpiEndpoint::receive(int from, std::span<std::byte> bytes, Transfers& transfers) {
  const MessageAddress address{line_, MessageKind::values, from, rank_};
  const auto start = [&](std::span<std::byte> message, MPI_Request& request) {
    return world_->start_receive(address, message, request);
  };
  if (!in_messages(from, bytes, transfers, start)) throw_failure();
}

void MpiEndpoint::finish(Transfers& transfers) {
  patience_.restart();
  wait(transfers, [&](int) { patience_.restart(); });
  transfers.requests.clear();
  transfers.peers.clear();
}

template <typename OnDone>
void MpiEndpoint::wait(Transfers& transfers, const OnDone& on_done) {
  transfers.done.resize(transfers.requests.size());
  while (true) {
    int num_done = 0;
    if (!world_->find_completed(transfers.requests, transfers.done, num_done)) throw_failure();
    if (num_done == MPI_UNDEFINED) return;
    for (int i = 0; i < num_done; ++i) on_done(transfers.done[as_index(i)]);
    if (num_done > 0) continue;
    check_lateness(patience_.waited_s(), transfers);
    patience_.pause();
  }
}

void MpiEndpoint::check_lateness(double waited_s, const Transfers& transfers) {
  const CommOptions& options = world_->options();
  const CallHeader& call = calls_[as_index(rank_)];
  const char* come = phase_ == Phase::meeting ? "come to" : "go on with";
  if (waited_s >= options.late_s && !std::exchange(is_late_told_, true)) {
    const char* have_come = phase_ == Phase::meeting ? "come to" : "gone on with";
    world_->tell_late(
        line_, call.sequence,
        fmt::format("{} {} {} for {:.3g} s", late_ranks(transfers, " has not", " have not"),
                    have_come, describe(call), waited_s));
  }
  if (waited_s < options.timeout_s) return;
  world_->fail(fmt::format("{} did not {} {} within {} s", late_ranks(transfers, "", ""), come,
                           describe(call), options.timeout_s));
  throw_failure();
}

std::string MpiEndpoint::late_ranks(const Transfers& transfers, std::string_view one,
                                    std::string_view many) const {
  std::set<int> late;
  for (std::size_t i = 0; i < transfers.requests.size(); ++i)
    if (transfers.requests[i] != MPI_REQUEST_NULL) late.insert(transfers.peers[i]);
  std::string names;
  for (int peer : late) names += fmt::format("{}rank {}", names.empty() ? "" : ", ", peer);
  return names + std::string(late.size() == 1 ? one : many);
}

void MpiEndpoint::leave() noexcept {
  if (world_->has_failed()) return;
  try {
    give({.sequence = num_calls_, .is_leaving = true});
  } catch (const Error&) {  // The job has failed meanwhile, which tells the others more.
  }
}

bool MpiEndpoint::is_over() {
  headers_.done.resize(headers_.requests.size());
  int num_done = 0;
  if (!world_->find_completed(headers_.requests, headers_.done, num_done)) return false;
  return num_done == MPI_UNDEFINED;
}

// What MPI has under way may lie in memory that is freed once this is caught.
void MpiEndpoint::throw_failure() {
  world_->stand_still();
  throw Error(fmt::format("{} on rank {} of {} failed: {}",
                          collective_name(calls_[as_index(rank_)].kind), rank_, num_ranks(),
                          world_->failure()));
}

}  // namespace strata
