#include "fake_nccl/fake_nccl.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace strata::testing {
namespace {

constexpr auto invalid_argument = static_cast<NcclStatus>(4);
constexpr auto abort_max = std::chrono::seconds(60);

const std::byte* bytes_of(const void* data) { return static_cast<const std::byte*>(data); }

std::vector<FakeAccess> accesses_of(const FakeNcclGroup& group) {
  std::vector<FakeAccess> accesses;
  for (const FakeNcclTransfer& sent : group.sends)
    accesses.push_back({sent.source, sent.bytes, Touch::reads});
  for (const FakeNcclTransfer& taken : group.receives)
    accesses.push_back({taken.target, taken.bytes, Touch::writes});
  return accesses;
}

}  // namespace

FakeNccl::FakeNccl(FakeCuda& cuda, const FakeNcclOptions& options)
    : cuda_(cuda), options_(options), random_(options.seed, 6) {}

std::vector<std::string> FakeNccl::leaks() const {
  const Lock lock(mutex_);
  std::vector<std::string> found;
  if (!comms_.empty()) found.push_back(std::to_string(comms_.size()) + " communicators");
  if (!groups_.empty()) found.push_back(std::to_string(groups_.size()) + " open groups");
  return found;
}

std::uint64_t FakeNccl::num_calls() const {
  const Lock lock(mutex_);
  return num_calls_;
}

std::uint64_t FakeNccl::num_groups() const {
  const Lock lock(mutex_);
  return num_groups_;
}

bool FakeNccl::is_hung() const {
  const Lock lock(mutex_);
  return options_.hanging_group && !comms_.empty() &&
         std::ranges::all_of(comms_, [&](const auto& each) {
           return each.second->num_begun > *options_.hanging_group;
         });
}

bool FakeNccl::fails() { return num_calls_++ == options_.failing_call; }

FakeNccl::CommPointer FakeNccl::find(NcclCommHandle comm, const std::string& what) {
  const auto found = comms_.find(comm);
  if (found == comms_.end()) {
    complaints_.add(what + " of a communicator that is none");
    return nullptr;
  }
  return found->second;
}

NcclStatus FakeNccl::version(int& version) {
  const Lock lock(mutex_);
  if (fails()) return nccl_system_error;
  version = options_.version;
  return NcclStatus::success;
}

NcclStatus FakeNccl::unique_id(NcclId& id) {
  const Lock lock(mutex_);
  if (fails()) return nccl_system_error;
  id.bytes.fill(static_cast<std::byte>(++num_ids_));
  return NcclStatus::success;
}

NcclStatus FakeNccl::comm_init(NcclCommHandle& comm, int world, const NcclId& id, int rank) {
  const Lock lock(mutex_);
  if (fails()) return nccl_system_error;
  auto clique = std::ranges::find(cliques_, id, [](const auto& known) { return known->id; });
  if (clique == cliques_.end()) {
    auto made = std::make_shared<FakeNcclClique>();
    made->id = id, made->world = world;
    clique = cliques_.insert(cliques_.end(), made);
  }
  if ((*clique)->world != world || rank < 0 || rank >= world)
    complaints_.add("a rank joins others than it says");
  ++(*clique)->num_joined, ++(*clique)->num_live;
  auto made = std::make_shared<FakeNcclComm>();
  made->clique = *clique, made->rank = rank;
  comm = made.get();
  comms_[comm] = made;
  return NcclStatus::in_progress;
}

// What was under way may come to its stream by it, as it would by a thread of NCCL's own.
NcclStatus FakeNccl::comm_state(NcclCommHandle comm, NcclStatus& state) {
  Lock lock(mutex_);
  if (num_questions_++ == options_.failing_question) return nccl_system_error;
  const CommPointer own = find(comm, "the state");
  if (own == nullptr) return invalid_argument;
  const FakeNcclClique& clique = *own->clique;
  const bool is_joining = clique.num_joined < clique.world;
  const bool is_ending = own->is_finalized && clique.num_finalized < clique.world;
  state = is_joining || is_ending ? NcclStatus::in_progress : NcclStatus::success;
  if (options_.tells_of_hang && own->num_begun > 0 && hangs(*own, own->num_begun - 1))
    state = nccl_remote_error;
  if (!own->pending) return NcclStatus::success;
  if (--own->polls_left > 0) {
    state = NcclStatus::in_progress;
    return NcclStatus::success;
  }
  const Launch launch = std::exchange(own->pending, nullptr);
  lock.unlock();
  launch();
  return NcclStatus::success;
}

NcclStatus FakeNccl::comm_finalize(NcclCommHandle comm) {
  const Lock lock(mutex_);
  if (fails()) return nccl_system_error;
  const CommPointer own = find(comm, "finalize");
  if (own == nullptr) return invalid_argument;
  own->is_finalized = true;
  ++own->clique->num_finalized;
  return NcclStatus::in_progress;
}

NcclStatus FakeNccl::comm_destroy(NcclCommHandle comm) {
  const Lock lock(mutex_);
  const CommPointer own = find(comm, "destroy");
  if (own == nullptr) return invalid_argument;
  if (own->clique->num_finalized < own->clique->world)
    complaints_.add("a communicator is destroyed before all ranks are done with theirs");
  give_back(own);
  return NcclStatus::success;
}

// As on one host: none is rid of what others may still write to. What was under way may reach its
// stream until the end.
NcclStatus FakeNccl::comm_abort(NcclCommHandle comm) {
  Lock lock(mutex_);
  const CommPointer own = find(comm, "abort");
  if (own == nullptr) return invalid_argument;
  own->is_aborted = true;
  if (const Launch launch = std::exchange(own->pending, nullptr)) {
    lock.unlock();
    launch();
    lock.lock();
  }
  give_back(own);
  if (!changed_.wait_for(lock, abort_max, [&] { return own->clique->num_live == 0; }))
    complaints_.add("rank " + std::to_string(own->rank) + " aborts, and another never does");
  return NcclStatus::success;
}

void FakeNccl::give_back(const CommPointer& comm) {
  comms_.erase(comm.get());
  --comm->clique->num_live;
  changed_.notify_all();
}

NcclStatus FakeNccl::group_start() {
  const Lock lock(mutex_);
  if (groups_.contains(std::this_thread::get_id()))
    complaints_.add("a group begins within another");
  groups_[std::this_thread::get_id()] = {};
  if (!fails()) return NcclStatus::success;
  groups_[std::this_thread::get_id()].is_broken = true;
  return nccl_system_error;
}

NcclStatus FakeNccl::group_end() {
  Lock lock(mutex_);
  const FakeNcclGroup group = groups_[std::this_thread::get_id()];
  groups_.erase(std::this_thread::get_id());
  if (fails() || group.is_broken) return nccl_system_error;
  if (group.comm == nullptr) return NcclStatus::success;
  const CommPointer comm = find(group.comm, "a group");
  if (comm == nullptr) return invalid_argument;
  if (comm->pending) complaints_.add("a group is given while another is under way");
  const Launch launch = launch_of(comm, group);
  if (random_.next_below(3) == 0) {
    comm->pending = launch;
    comm->polls_left = 1 + static_cast<int>(random_.next_below(3));
    return NcclStatus::in_progress;
  }
  lock.unlock();
  launch();
  return NcclStatus::success;
}

FakeNccl::Launch FakeNccl::launch_of(const CommPointer& comm, const FakeNcclGroup& group) {
  const std::uint64_t number = comm->num_given++;
  ++num_groups_;
  const auto locked = [this](const auto& work) {
    const Lock lock(mutex_);
    return work();
  };
  const FakeCuda::JointWork work{
      [=] { return locked([&] { return comm->is_aborted || comm->num_begun == number; }); },
      [=, this] { locked([&] { send_all(*comm, group); }); },
      [=, this] { return locked([&] { return may_end(*comm, group, number); }); },
      [=, this] { locked([&] { receive_all(*comm, group); }); }};
  const std::string what = "a group of rank " + std::to_string(comm->rank);
  return [this, group, what, work] {
    cuda_.launch_joint(group.stream, what, accesses_of(group), work);
  };
}

bool FakeNccl::hangs(const FakeNcclComm& comm, std::uint64_t group) const {
  return comm.rank == options_.hanging_rank && options_.hanging_group &&
         group >= *options_.hanging_group;
}

bool FakeNccl::may_end(const FakeNcclComm& comm, const FakeNcclGroup& group,
                       std::uint64_t number) const {
  if (comm.is_aborted) return true;
  if (hangs(comm, number)) return false;
  return std::ranges::all_of(group.receives, [&](const FakeNcclTransfer& taken) {
    const auto mail = comm.clique->mail.find({taken.peer, comm.rank});
    const auto wanted = std::ranges::count(group.receives, taken.peer, &FakeNcclTransfer::peer);
    return mail != comm.clique->mail.end() && std::ssize(mail->second) >= wanted;
  });
}

// A rank that hangs gives nothing either.
void FakeNccl::send_all(FakeNcclComm& comm, const FakeNcclGroup& group) {
  if (comm.is_aborted) return;
  const std::uint64_t number = comm.num_begun++;
  if (hangs(comm, number)) return;
  for (const FakeNcclTransfer& sent : group.sends)
    comm.clique->mail[{comm.rank, sent.peer}].push_back(
        {sent.kind, {sent.source, sent.source + sent.bytes}});
}

// Of an abort rubbish is left.
void FakeNccl::receive_all(FakeNcclComm& comm, const FakeNcclGroup& group) {
  for (const FakeNcclTransfer& taken : group.receives) {
    if (comm.is_aborted) {
      std::memset(taken.target, 0xee, taken.bytes);
      continue;
    }
    auto& mail = comm.clique->mail[{taken.peer, comm.rank}];
    if (mail.front().kind != taken.kind || mail.front().bytes.size() != taken.bytes)
      complaints_.add("rank " + std::to_string(comm.rank) + " takes " + taken.kind + " of " +
                      std::to_string(taken.bytes) + " bytes where rank " +
                      std::to_string(taken.peer) + " gave " + mail.front().kind + " of " +
                      std::to_string(mail.front().bytes.size()));
    else
      std::memcpy(taken.target, mail.front().bytes.data(), taken.bytes);
    mail.pop_front();
  }
}

// The group that this thread has begun, for a call of it.
FakeNcclGroup* FakeNccl::open_group(NcclCommHandle comm, NcclStreamHandle stream) {
  const auto group = groups_.find(std::this_thread::get_id());
  if (group == groups_.end()) {
    complaints_.add("a call outside of groups");
    return nullptr;
  }
  if (group->second.comm != nullptr &&
      (group->second.comm != comm || group->second.stream != stream))
    complaints_.add("a group is of several communicators or streams");
  group->second.comm = comm, group->second.stream = stream;
  if (find(comm, "a call") == nullptr) return nullptr;
  if (!fails()) return &group->second;
  group->second.is_broken = true;
  return nullptr;
}

// A rank's own part comes to it as a message of its own.
NcclStatus FakeNccl::all_gather(const void* shard, void* gathered, std::uint64_t shard_bytes,
                                NcclCommHandle comm, NcclStreamHandle stream) {
  const Lock lock(mutex_);
  FakeNcclGroup* const group = open_group(comm, stream);
  if (group == nullptr) return nccl_system_error;
  for (int peer = 0; peer < find(comm, "all_gather")->clique->world; ++peer) {
    group->sends.push_back({"all_gather", peer, bytes_of(shard), nullptr, shard_bytes});
    group->receives.push_back(
        {"all_gather", peer, nullptr,
         static_cast<std::byte*>(gathered) + static_cast<std::uint64_t>(peer) * shard_bytes,
         shard_bytes});
  }
  return NcclStatus::success;
}

NcclStatus FakeNccl::broadcast(void* values, std::uint64_t bytes, int root, NcclCommHandle comm,
                               NcclStreamHandle stream) {
  const Lock lock(mutex_);
  FakeNcclGroup* const group = open_group(comm, stream);
  if (group == nullptr) return nccl_system_error;
  const CommPointer own = find(comm, "broadcast");
  if (own->rank != root)
    group->receives.push_back({"broadcast", root, nullptr, static_cast<std::byte*>(values), bytes});
  for (int peer = 0; peer < own->clique->world && own->rank == root; ++peer)
    if (peer != root) group->sends.push_back({"broadcast", peer, bytes_of(values), nullptr, bytes});
  return NcclStatus::success;
}

NcclStatus FakeNccl::send(const void* values, std::uint64_t bytes, int to, NcclCommHandle comm,
                          NcclStreamHandle stream) {
  const Lock lock(mutex_);
  FakeNcclGroup* const group = open_group(comm, stream);
  if (group == nullptr) return nccl_system_error;
  group->sends.push_back({"send", to, bytes_of(values), nullptr, bytes});
  return NcclStatus::success;
}

NcclStatus FakeNccl::receive(void* values, std::uint64_t bytes, int from, NcclCommHandle comm,
                             NcclStreamHandle stream) {
  const Lock lock(mutex_);
  FakeNcclGroup* const group = open_group(comm, stream);
  if (group == nullptr) return nccl_system_error;
  group->receives.push_back({"send", from, nullptr, static_cast<std::byte*>(values), bytes});
  return NcclStatus::success;
}

std::string_view FakeNccl::status_text(NcclStatus status) {
  return status == nccl_remote_error ? "remote process exited" : "unhandled system error";
}

}  // namespace strata::testing
