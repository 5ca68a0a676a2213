#pragma once
// NCCL as comm/nccl uses it, on the host: ranks that are threads of this process, work that runs on
// the streams of a FakeCuda. Work may reach its stream later than the call that asks for it, as
// communicators do not block; nothing that another rank must bring is there before it has brought
// it, and a communicator's work runs in the order of its calls, whatever the streams. It complains
// of what NCCL would not forgive: calls that do not match the other ranks', a communicator that two
// threads use at once, that is used while a call is under way or after it was given back, an abort
// that other ranks of the host do not join.
//
// Thread contract: any thread. Calls FakeCuda under no lock of its own, and is called by it.

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fake_cuda/fake_complaints.hpp"
#include "fake_cuda/fake_cuda.hpp"
#include "fake_nccl/fake_nccl_comm.hpp"
#include "src/comm/nccl/nccl_api.hpp"

namespace strata::testing {

inline constexpr auto nccl_system_error = static_cast<NcclStatus>(2);
inline constexpr auto nccl_remote_error = static_cast<NcclStatus>(6);

struct FakeNcclOptions {
  std::uint64_t seed = 1;
  int version = 22809;
  // The call of this number (from 0) fails; those that give back do not, and those that ask for a
  // state are counted apart: they are as many as there is time for.
  std::optional<std::uint64_t> failing_call = {}, failing_question = {};
  // From its group of this number (from 0) on, nothing of this rank's communicator ends.
  int hanging_rank = 0;
  std::optional<std::uint64_t> hanging_group = {};
  // Whether NCCL notices, and says so to who asks for the state.
  bool tells_of_hang = false;
};

class FakeNccl final : public NcclApi {
 public:
  FakeNccl(FakeCuda& cuda, const FakeNcclOptions& options);

  std::vector<std::string> complaints() const { return complaints_.texts(); }
  std::vector<std::string> leaks() const;  // what was made and not given back
  std::uint64_t num_calls() const;         // but questions
  std::uint64_t num_groups() const;        // of all ranks
  // Whether the streams of all ranks have come to the group that hangs.
  bool is_hung() const;

  NcclStatus version(int& version) override;
  NcclStatus unique_id(NcclId& id) override;
  NcclStatus comm_init(NcclCommHandle& comm, int world, const NcclId& id, int rank) override;
  NcclStatus comm_state(NcclCommHandle comm, NcclStatus& state) override;
  NcclStatus comm_finalize(NcclCommHandle comm) override;
  NcclStatus comm_destroy(NcclCommHandle comm) override;
  NcclStatus comm_abort(NcclCommHandle comm) override;
  NcclStatus group_start() override;
  NcclStatus group_end() override;
  NcclStatus all_gather(const void* shard, void* gathered, std::uint64_t shard_bytes,
                        NcclCommHandle comm, NcclStreamHandle stream) override;
  NcclStatus broadcast(void* values, std::uint64_t bytes, int root, NcclCommHandle comm,
                       NcclStreamHandle stream) override;
  NcclStatus send(const void* values, std::uint64_t bytes, int to, NcclCommHandle comm,
                  NcclStreamHandle stream) override;
  NcclStatus receive(void* values, std::uint64_t bytes, int from, NcclCommHandle comm,
                     NcclStreamHandle stream) override;
  std::string_view status_text(NcclStatus status) override;
  std::string last_error() override { return "the fake's last error"; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  using CommPointer = std::shared_ptr<FakeNcclComm>;
  using Launch = std::function<void()>;

  bool fails();
  CommPointer find(NcclCommHandle comm, const std::string& what);
  FakeNcclGroup* open_group(NcclCommHandle comm, NcclStreamHandle stream);
  Launch launch_of(const CommPointer& comm, const FakeNcclGroup& group);
  bool hangs(const FakeNcclComm& comm, std::uint64_t group) const;
  bool may_end(const FakeNcclComm& comm, const FakeNcclGroup& group, std::uint64_t number) const;
  void send_all(FakeNcclComm& comm, const FakeNcclGroup& group);
  void receive_all(FakeNcclComm& comm, const FakeNcclGroup& group);
  void give_back(const CommPointer& comm);

  FakeCuda& cuda_;
  const FakeNcclOptions options_;
  FakeComplaints complaints_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  PhiloxStream random_;
  std::uint64_t num_calls_ = 0, num_questions_ = 0, num_groups_ = 0;
  std::uint8_t num_ids_ = 0;
  std::map<NcclCommHandle, CommPointer> comms_;
  std::vector<std::shared_ptr<FakeNcclClique>> cliques_;
  std::map<std::thread::id, FakeNcclGroup> groups_;  // that are open
};

}  // namespace strata::testing
