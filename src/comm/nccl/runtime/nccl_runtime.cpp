// NCCL behind NcclApi. Nothing here decides anything: one call each, of a library that is found
// when it is first asked for.

#include <fmt/format.h>
#include <nccl.h>

#include <array>
#include <cstring>
#include <string>

#include "comm/nccl/nccl_job.hpp"
#include "strata/core/error.hpp"
#include "strata/core/shared_library.hpp"

namespace strata {
namespace {

static_assert(NCCL_MAJOR == nccl_major && sizeof(NcclId) == sizeof(ncclUniqueId));

SharedLibrary load_nccl() {
  const std::array<std::string, 1> names = {"libnccl.so.2"};
  return {"NCCL, which carries between GPUs,",
          names,
          {},
          fmt::format("Strata needs NCCL {}.{} or newer: install it (the package libnccl2 of "
                      "NVIDIA's repository, or nvidia-nccl of pip) and put the folder of {} into "
                      "LD_LIBRARY_PATH where the loader does not look there by itself",
                      nccl_major, nccl_minor_min, names.front())};
}

struct NcclFunctions {
  NcclFunctions() {
    const SharedLibrary library = load_nccl();
    library.find("ncclGetVersion", get_version);
    library.find("ncclGetUniqueId", get_unique_id);
    library.find("ncclCommInitRankConfig", comm_init_rank_config);
    library.find("ncclCommGetAsyncError", comm_get_async_error);
    library.find("ncclCommFinalize", comm_finalize);
    library.find("ncclCommDestroy", comm_destroy);
    library.find("ncclCommAbort", comm_abort);
    library.find("ncclGroupStart", group_start);
    library.find("ncclGroupEnd", group_end);
    library.find("ncclAllGather", all_gather);
    library.find("ncclBroadcast", broadcast);
    library.find("ncclSend", send);
    library.find("ncclRecv", recv);
    library.find("ncclGetErrorString", get_error_string);
    library.find("ncclGetLastError", get_last_error);
  }

  decltype(ncclGetVersion)* get_version = nullptr;
  decltype(ncclGetUniqueId)* get_unique_id = nullptr;
  decltype(ncclCommInitRankConfig)* comm_init_rank_config = nullptr;
  decltype(ncclCommGetAsyncError)* comm_get_async_error = nullptr;
  decltype(ncclCommFinalize)* comm_finalize = nullptr;
  decltype(ncclCommDestroy)* comm_destroy = nullptr;
  decltype(ncclCommAbort)* comm_abort = nullptr;
  decltype(ncclGroupStart)* group_start = nullptr;
  decltype(ncclGroupEnd)* group_end = nullptr;
  decltype(ncclAllGather)* all_gather = nullptr;
  decltype(ncclBroadcast)* broadcast = nullptr;
  decltype(ncclSend)* send = nullptr;
  decltype(ncclRecv)* recv = nullptr;
  decltype(ncclGetErrorString)* get_error_string = nullptr;
  decltype(ncclGetLastError)* get_last_error = nullptr;
};

NcclStatus status_of(ncclResult_t result) { return static_cast<NcclStatus>(result); }
ncclComm_t comm_of(NcclCommHandle comm) { return static_cast<ncclComm_t>(comm); }
cudaStream_t stream_of(NcclStreamHandle stream) { return static_cast<cudaStream_t>(stream); }

class NcclRuntime final : public NcclApi {
 public:
  NcclStatus version(int& version) override { return status_of(nccl_.get_version(&version)); }
  NcclStatus unique_id(NcclId& id) override {
    ncclUniqueId made{};
    const ncclResult_t result = nccl_.get_unique_id(&made);
    std::memcpy(id.bytes.data(), &made, sizeof made);
    return status_of(result);
  }

  NcclStatus comm_init(NcclCommHandle& comm, int world, const NcclId& id, int rank) override {
    ncclUniqueId own{};
    std::memcpy(&own, id.bytes.data(), sizeof own);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t made = nullptr;
    const ncclResult_t result = nccl_.comm_init_rank_config(&made, world, own, rank, &config);
    comm = made;
    return status_of(result);
  }
  NcclStatus comm_state(NcclCommHandle comm, NcclStatus& state) override {
    ncclResult_t found = ncclSuccess;
    const ncclResult_t result = nccl_.comm_get_async_error(comm_of(comm), &found);
    state = status_of(found);
    return status_of(result);
  }
  NcclStatus comm_finalize(NcclCommHandle comm) override {
    return status_of(nccl_.comm_finalize(comm_of(comm)));
  }
  NcclStatus comm_destroy(NcclCommHandle comm) override {
    return status_of(nccl_.comm_destroy(comm_of(comm)));
  }
  NcclStatus comm_abort(NcclCommHandle comm) override {
    return status_of(nccl_.comm_abort(comm_of(comm)));
  }

  NcclStatus group_start() override { return status_of(nccl_.group_start()); }
  NcclStatus group_end() override { return status_of(nccl_.group_end()); }
  NcclStatus all_gather(const void* shard, void* gathered, std::uint64_t shard_bytes,
                        NcclCommHandle comm, NcclStreamHandle stream) override {
    return status_of(nccl_.all_gather(shard, gathered, shard_bytes, ncclUint8, comm_of(comm),
                                      stream_of(stream)));
  }
  NcclStatus broadcast(void* values, std::uint64_t bytes, int root, NcclCommHandle comm,
                       NcclStreamHandle stream) override {
    return status_of(
        nccl_.broadcast(values, values, bytes, ncclUint8, root, comm_of(comm), stream_of(stream)));
  }
  NcclStatus send(const void* values, std::uint64_t bytes, int to, NcclCommHandle comm,
                  NcclStreamHandle stream) override {
    return status_of(nccl_.send(values, bytes, ncclUint8, to, comm_of(comm), stream_of(stream)));
  }
  NcclStatus receive(void* values, std::uint64_t bytes, int from, NcclCommHandle comm,
                     NcclStreamHandle stream) override {
    return status_of(nccl_.recv(values, bytes, ncclUint8, from, comm_of(comm), stream_of(stream)));
  }

  std::string_view status_text(NcclStatus status) override {
    return nccl_.get_error_string(static_cast<ncclResult_t>(status));
  }
  std::string last_error() override {
    const char* const text = nccl_.get_last_error(nullptr);
    return text == nullptr ? "" : text;
  }

 private:
  const NcclFunctions nccl_;
};

// Tried again by the next who asks, where it failed.
NcclRuntime& runtime() {
  static NcclRuntime instance;
  return instance;
}

}  // namespace

NcclFacts read_nccl() {
  try {
    return nccl_facts(runtime());
  } catch (const ConfigError& error) {
    return {true, "", error.what()};
  }
}

std::unique_ptr<NcclJob> NcclJob::start(int world) {
  return make_nccl_job(world == 1 ? nullptr : &runtime());
}

}  // namespace strata
