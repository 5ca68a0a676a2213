#pragma once
// The calls to NCCL that comm/nccl makes, so that a fake can stand in for it. Handles are NCCL's
// pointers with their types taken off; a status is its result's number. Communicators do not block:
// a call may return in_progress, and comm_state() then tells when it is done. None throws.
//
// Thread contract: as NCCL's: one thread at a time a communicator; comm_abort() from any.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

using NcclCommHandle = void*;
using NcclStreamHandle = void*;

// Those that the code decides on; others are passed on as they are.
enum class NcclStatus : int { success = 0, in_progress = 7 };

inline bool is_error(NcclStatus status) {
  return status != NcclStatus::success && status != NcclStatus::in_progress;
}

// Before 2.18 NCCL wrote to the variable that comm_init() was given even after that had returned.
inline constexpr int nccl_major = 2, nccl_minor_min = 18;

// What rank 0 makes up and the others must be told.
struct NcclId {
  std::array<std::byte, 128> bytes{};
  bool operator==(const NcclId&) const = default;
};

class NcclApi {
 public:
  virtual ~NcclApi() = default;

  virtual NcclStatus version(int& version) = 0;  // 22809 is 2.28.9
  virtual NcclStatus unique_id(NcclId& id) = 0;

  // --- Communicators. comm_init() is for the calling thread's CUDA device.
  virtual NcclStatus comm_init(NcclCommHandle& comm, int world, const NcclId& id, int rank) = 0;
  virtual NcclStatus comm_state(NcclCommHandle comm, NcclStatus& state) = 0;
  virtual NcclStatus comm_finalize(NcclCommHandle comm) = 0;
  virtual NcclStatus comm_destroy(NcclCommHandle comm) = 0;
  virtual NcclStatus comm_abort(NcclCommHandle comm) = 0;  // it is given back thereby

  // --- What is called between start and end goes to the stream as one.
  virtual NcclStatus group_start() = 0;
  virtual NcclStatus group_end() = 0;
  virtual NcclStatus all_gather(const void* shard, void* gathered, std::uint64_t shard_bytes,
                                NcclCommHandle comm, NcclStreamHandle stream) = 0;
  virtual NcclStatus broadcast(void* values, std::uint64_t bytes, int root, NcclCommHandle comm,
                               NcclStreamHandle stream) = 0;
  virtual NcclStatus send(const void* values, std::uint64_t bytes, int to, NcclCommHandle comm,
                          NcclStreamHandle stream) = 0;
  virtual NcclStatus receive(void* values, std::uint64_t bytes, int from, NcclCommHandle comm,
                             NcclStreamHandle stream) = 0;

  // --- Errors.
  virtual std::string_view status_text(NcclStatus status) = 0;
  virtual std::string last_error() = 0;  // of this thread or its communicators; may be empty
};

}  // namespace strata
