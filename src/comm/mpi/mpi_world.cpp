#include "mpi_world.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "strata/core/error.hpp"

namespace strata {
namespace {

// MPI may notice a dead process before the process group, which knows its name.
constexpr auto cause_patience = std::chrono::seconds(3);

// What MPI still gets to do after a failure.
constexpr auto soon = std::chrono::milliseconds(250);

// Longer than a call that does not block takes, and shorter than mpirun waits before it kills.
constexpr auto stuck = std::chrono::milliseconds(400);

std::string text_of(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text = {};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

std::int64_t largest_tag(MPI_Comm comm) {
  void* value = nullptr;
  int is_set = 0;
  MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&value), &is_set);
  return is_set != 0 ? *static_cast<int*>(value) : 32767;  // what the standard promises
}

}  // namespace

MpiWorld::MpiWorld(MPI_Comm ranks, int ranks_per_process, const CommOptions& options,
                   ProcessGroup& group)
    : ranks_(ranks), ranks_per_process_(ranks_per_process), options_(options), group_(group) {
  MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(ranks_, &process_);
  MPI_Comm_size(ranks_, &num_processes_);
  const std::int64_t tags = std::int64_t{4} * ranks_per_process * ranks_per_process;
  if (tags - 1 > largest_tag(MPI_COMM_WORLD))
    throw ConfigError(
        fmt::format("{} ranks per process need {} MPI tags, and there are {}: use "
                    "more processes of fewer ranks",
                    ranks_per_process, tags, largest_tag(MPI_COMM_WORLD) + 1));
}

int MpiWorld::tag(const MessageAddress& address) const {
  int tag = static_cast<int>(address.line) * 2 + static_cast<int>(address.kind);
  tag = tag * ranks_per_process_ + address.from % ranks_per_process_;
  return tag * ranks_per_process_ + address.to % ranks_per_process_;
}

template <typename Call>
bool MpiWorld::enter(const char* what, const Call& call) {
  int code = MPI_SUCCESS;
  {
    const std::shared_lock lock(gate_);
    if (is_closed()) return false;
    code = call();
  }
  if (code == MPI_SUCCESS) return true;
  fail_with_code(what, code);
  return false;
}

bool MpiWorld::is_closed() const {
  return has_failed() && std::chrono::steady_clock::now() >= closes_at_;
}

bool MpiWorld::start_send(const MessageAddress& address, std::span<const std::byte> bytes,
                          MPI_Request& request) {
  return enter("MPI_Isend", [&] {
    return MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, process_of(address.to),
                     tag(address), ranks_, &request);
  });
}

bool MpiWorld::start_receive(const MessageAddress& address, std::span<std::byte> bytes,
                             MPI_Request& request) {
  return enter("MPI_Irecv", [&] {
    return MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE,
                     process_of(address.from), tag(address), ranks_, &request);
  });
}

bool MpiWorld::find_completed(std::span<MPI_Request> requests, std::span<int> done, int& num_done) {
  return enter("MPI_Testsome", [&] {
    return MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &num_done, done.data(),
                        MPI_STATUSES_IGNORE);
  });
}

std::string MpiWorld::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool MpiWorld::keep_reason(const std::string& reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (has_failed()) return false;
  failure_ = reason;
  closes_at_ = std::chrono::steady_clock::now() + soon;
  has_failed_.store(true, std::memory_order_release);
  try {
    if (options_.on_late) teller_ = std::jthread([this, reason] { tell_if_stuck(reason); });
  } catch (const std::system_error&) {  // No thread to be had: nobody is told.
  }
  return true;
}

void MpiWorld::tell_if_stuck(const std::string& reason) {
  std::this_thread::sleep_until(closes_at_);
  const std::lock_guard telling(telling_);
  const std::unique_lock lock(gate_, stuck);
  if (!lock.owns_lock())
    options_.on_late(
        fmt::format("{}; and MPI holds a rank of process {} meanwhile", reason, process_));
}

void MpiWorld::fail(const std::string& reason) noexcept {
  if (keep_reason(reason)) group_.fail(reason);
}

void MpiWorld::hear_of(const std::string& reason) noexcept { keep_reason(reason); }

void MpiWorld::fail_with_code(const char* what, int code) {
  const auto until = std::chrono::steady_clock::now() + cause_patience;
  while (!has_failed() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  fail(fmt::format("{}: {}", what, text_of(code)));
}

void MpiWorld::stand_still() {
  ensure(has_failed());
  std::this_thread::sleep_until(closes_at_);
  { const std::unique_lock none_inside(gate_); }
  const std::lock_guard none_told(telling_);
}

void MpiWorld::end_telling() {
  if (teller_.joinable()) teller_.join();
}

void MpiWorld::tell_late(MpiLine line, std::uint64_t sequence, const std::string& text) {
  if (!options_.on_late) return;
  std::atomic<std::uint64_t>& told = told_late_[static_cast<std::size_t>(line)];
  std::uint64_t before = told.load();
  while (before <= sequence) {
    if (told.compare_exchange_weak(before, sequence + 1)) return options_.on_late(text);
  }
}

}  // namespace strata
