#pragma once
// What one rank gives to NCCL as one group. The first call that fails is kept, and ends the rest.
// One thread.

#include <cstdint>
#include <string_view>

#include "comm/nccl/nccl_api.hpp"
#include "strata/core/tensor_view.hpp"

namespace strata {

inline std::uint64_t count_bytes(const TensorView& view) {
  return static_cast<std::uint64_t>(view.bytes());
}

class NcclCalls {
 public:
  NcclCalls(NcclApi& api, NcclCommHandle comm) : api_(api), comm_(comm) {
    took(api_.group_start(), "ncclGroupStart");
  }

  void all_gather(const void* shard, void* gathered, std::uint64_t bytes, NcclStreamHandle stream) {
    if (go_on()) took(api_.all_gather(shard, gathered, bytes, comm_, stream), "ncclAllGather");
  }
  void broadcast(void* values, std::uint64_t bytes, int root, NcclStreamHandle stream) {
    if (go_on()) took(api_.broadcast(values, bytes, root, comm_, stream), "ncclBroadcast");
  }
  void send(const void* values, std::uint64_t bytes, int to, NcclStreamHandle stream) {
    if (go_on()) took(api_.send(values, bytes, to, comm_, stream), "ncclSend");
  }
  void receive(void* values, std::uint64_t bytes, int from, NcclStreamHandle stream) {
    if (go_on()) took(api_.receive(values, bytes, from, comm_, stream), "ncclRecv");
  }
  // To be called once, whatever has failed: else NCCL takes all later calls for the group's.
  void end() {
    const NcclStatus status = api_.group_end();
    if (go_on()) took(status, "ncclGroupEnd");
  }

  NcclStatus status() const { return status_; }  // of the group; an error's is the first
  std::string_view last_call() const { return last_call_; }

 private:
  bool go_on() const { return !is_error(status_); }
  void took(NcclStatus status, std::string_view call) { status_ = status, last_call_ = call; }

  NcclApi& api_;
  NcclCommHandle comm_;
  NcclStatus status_ = NcclStatus::success;
  std::string_view last_call_;
};

}  // namespace strata
