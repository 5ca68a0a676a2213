// Versioned stores on the drives of several hosts: each has the stores of its own ranks, all share
// the output folder. Hosts are threads with a disk each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>

#include "sim/resumed_run.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"
#include "strata/train/durable_state.hpp"
#include "strata/train/ranks.hpp"
#include "support/forwarding_engine.hpp"
#include "support/forwarding_file_system.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using testing::ForwardingEngine;
using testing::ForwardingFileSystem;
using testing::fresh_folder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

constexpr int hosts = 2;
constexpr std::int64_t hosts_last_step = 4;
constexpr const char* drive = "/nvme";

// Each host has its own drives; all else is on a file system that they share.
class HostFileSystem : public ForwardingFileSystem {
 public:
  HostFileSystem(FileSystem& own, FileSystem& shared) : own_(own), shared_(shared) {}

 private:
  FileSystem& at(const char*, const std::string& path) const override {
    return path.starts_with(drive) ? own_ : shared_;
  }

  FileSystem& own_;
  FileSystem& shared_;
};

// Transfers go to the host's own drives.
class HostEngine : public ForwardingEngine {
 public:
  explicit HostEngine(FileSystem& shared)
      : ForwardingEngine(make_sim_engine({})), files_(disk().file_system(), shared) {
    disk().file_system().make_directory(drive);
    disk().file_system().sync_directory("/");
  }
  SimEngine& disk() { return static_cast<SimEngine&>(real()); }
  FileSystem& file_system() override { return files_; }

 private:
  HostFileSystem files_;
};

// What processes tell one another; a host that has failed ends it for all.
class Meeting {
 public:
  std::vector<std::string> exchange(int host, const std::string& own) {
    std::unique_lock lock(mutex_);
    const std::size_t round = next_[static_cast<std::size_t>(host)]++;
    said_[round][static_cast<std::size_t>(host)] = own;
    ++arrived_[round];
    changed_.notify_all();
    changed_.wait(lock, [&] { return arrived_[round] == hosts || is_over_; });
    if (arrived_[round] < hosts) throw Error("another host has failed");
    const auto& said = said_[round];
    return {said.begin(), said.end()};
  }
  void end() {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::array<std::size_t, hosts> next_ = {};
  std::map<std::size_t, std::array<std::string, hosts>> said_;  // by round
  std::map<std::size_t, int> arrived_;
  bool is_over_ = false;
};

class DurableOverHosts : public ::testing::Test {
 protected:
  DurableOverHosts() : files_(testing::make_training_files(random_model_preset("tiny"))) {
    config_ = testing::tiny_config(files_);
    config_.max_steps = hosts_last_step;
    config_.evaluate = false;
    config_.gradient_accumulation_steps = 1;
    config_.ranks = config_.world = hosts;
    config_.save_strategy = SaveStrategy::no;
    config_.resume_from_checkpoint = "true";
    config_.offload.nvme_paths = {drive};
    config_.offload.versioned = true;
    config_.offload.master = config_.offload.moment1 = config_.offload.moment2 = {0, 0, 1};
    begin_anew();
  }
  // Another run, on empty drives.
  void begin_anew() {
    config_.output_dir = fresh_folder("run");
    shared_->file_system().make_directory(config_.output_dir.string());
    engines_.clear();
    for (int host = 0; host < hosts; ++host)
      engines_.push_back(std::make_shared<HostEngine>(shared_->file_system()));
  }
  HostEngine& host(int host) { return *engines_[static_cast<std::size_t>(host)]; }
  SimEngine& disk(int host) { return this->host(host).disk(); }

  // All hosts train to the end, each a rank. Returns the exported weights.
  std::string go_on() {
    std::vector<RankLinks> links = make_local_ranks(hosts);
    Meeting meeting;
    const std::filesystem::path exported = fresh_folder("export") / "model";
    run_ranks(links, [&](RankLinks& own) {
      try {
        run_host(own, meeting, exported);
      } catch (...) {
        meeting.end();
        throw;
      }
    });
    return testing::read_bytes(exported / "model.safetensors");
  }
  // Until the power of one host fails. Returns the versions that each has.
  std::vector<std::vector<std::uint64_t>> cut(int host, std::uint64_t changes) {
    disk(host).power_fails_at(disk(host).changes() + changes);
    try {
      go_on();
    } catch (const Error&) {
      // The power was cut.
    }
    disk(host).cut_power();
    return versions();
  }
  std::vector<std::vector<std::uint64_t>> versions() {
    const StateStores stores = record().current;
    std::vector<std::vector<std::uint64_t>> all(hosts);
    if (stores.id.empty()) return all;
    for (int host = 0; host < hosts; ++host)
      for (const StoreVersion& version :
           store_versions(disk(host).file_system(), stores.path(host)))
        all[static_cast<std::size_t>(host)].push_back(version.version);
    return all;
  }
  StateRecord record() {
    return read_state_record(shared_->file_system(), config_.output_dir.string());
  }
  // The files of a host's store, to be put back later.
  std::map<std::string, std::vector<std::byte>> store_of(int host) {
    FileSystem& files = disk(host).file_system();
    const std::string path = record().current.path(host);
    std::map<std::string, std::vector<std::byte>> contents;
    for (const std::string& name : files.list(path))
      contents[path + "/" + name] = files.read_file(path + "/" + name, 1 << 26);
    return contents;
  }

  void put_back(int host, const std::map<std::string, std::vector<std::byte>>& contents) {
    for (const auto& [path, bytes] : contents) disk(host).file_system().write_file(path, bytes);
  }

  testing::TrainingFiles files_;
  RunConfig config_;
  std::shared_ptr<SimEngine> shared_ = make_sim_engine({});
  std::vector<std::shared_ptr<HostEngine>> engines_;

 private:
  void run_host(RankLinks& own, Meeting& meeting, const std::filesystem::path& exported) {
    const int rank = own.data->rank();
    const std::shared_ptr<HostEngine> engine = engines_[static_cast<std::size_t>(rank)];
    const Exchange exchange = [&](const std::string& text) { return meeting.exchange(rank, text); };
    const ResumePoint point = choose_resume_point(config_, *engine, exchange, rank == 0);
    train(own, point, engine, exported);
    forget_removed_stores(engine->file_system(), config_.output_dir.string(), exchange, rank == 0);
  }
  void train(RankLinks& own, const ResumePoint& point, const std::shared_ptr<IoEngine>& engine,
             const std::filesystem::path& exported) const {
    SessionOptions options;
    options.links = &own;
    options.point = &point;
    options.make_engine = [&](const OffloadConfig&) { return engine; };
    TierLimits limits;
    limits.drive_bytes = {std::uint64_t{1} << 40};
    const RankPlace place{own.data->rank(), hosts, 0, 1};
    Session session(config_, plan_run(config_, Purpose::train, read_topology(), place, limits),
                    options);
    TrainerOptions watched;
    watched.resume = point.note();
    Trainer(config_, session, nullptr, watched).run();
    session.export_to(exported);
    session.end_durable();
  }
};

using Versions = std::vector<std::vector<std::uint64_t>>;

TEST_F(DurableOverHosts, LeaveNothingOnAnyHostWhenTheyAreDone) {
  go_on();
  for (int i = 0; i < hosts; ++i) EXPECT_THAT(disk(i).file_system().list(drive), IsEmpty());
  EXPECT_TRUE(record().current.id.empty());
}

TEST_F(DurableOverHosts, GoOnFromTheLastStepThatAllHostsHave) {
  const std::string whole = go_on();
  const std::uint64_t changes = disk(1).changes(), begin = changes / 8;
  int behind = 0, resumed = 0;
  // Whether the other host is ahead of a cut is the machine's affair: there are as many as it
  // takes.
  for (std::uint64_t cuts = 0; cuts < 200 && (behind == 0 || resumed < 4); ++cuts) {
    const std::uint64_t at = begin + cuts * (changes / 31) % (changes - begin);
    SCOPED_TRACE(::testing::Message() << "change " << at << " of " << changes);
    begin_anew();
    const Versions left = cut(1, at);
    if (!left[0].empty() && !left[1].empty()) {
      ++resumed;
      behind += left[1].front() < left[0].front() ? 1 : 0;
    }
    EXPECT_TRUE(go_on() == whole);
    EXPECT_THAT(disk(1).file_system().list(drive), IsEmpty());
  }
  EXPECT_GT(resumed, 3);
  EXPECT_GT(behind, 0) << "no cut left one host a step behind the other";
}

TEST_F(DurableOverHosts, AreRefusedWhereOneIsFurtherBehind) {
  const std::string whole = go_on();
  const std::uint64_t changes = disk(1).changes();
  begin_anew();
  const Versions early = cut(1, changes / 2);
  ASSERT_FALSE(early[1].empty());
  const auto old = store_of(1);
  // Every step commits: a few more of them leave the old one behind.
  const Versions late = cut(1, changes / 3);
  ASSERT_GT(late[0].back(), early[1].front());
  const auto newer = store_of(1);
  put_back(1, old);
  EXPECT_THAT([&] { go_on(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("which another rank does not have"),
                                         HasSubstr("-rank0 has step"),
                                         HasSubstr("remove versioned_state.json"))));
  put_back(1, newer);
  EXPECT_TRUE(go_on() == whole);
}

TEST_F(DurableOverHosts, AreRefusedWhereOneHasLostItsStore) {
  const std::string whole = go_on();
  const std::uint64_t changes = disk(1).changes();
  begin_anew();
  const Versions left = cut(1, changes / 2);
  ASSERT_FALSE(left[1].empty());
  const auto lost = store_of(1);
  const std::string path = record().current.path(1);
  for (const auto& [name, bytes] : lost) disk(1).file_system().remove(name);
  disk(1).file_system().remove(path);
  EXPECT_THAT([&] { go_on(); },
              ThrowsMessage<Error>(AllOf(HasSubstr(path + " is missing"), HasSubstr("mounted?"))));
  disk(1).file_system().make_directory(path);
  put_back(1, lost);
  EXPECT_TRUE(go_on() == whole);
}

// The ranks of a host must find their own stores there: no host can read another's drives.
TEST_F(DurableOverHosts, AreRefusedWhereRanksAreOnOtherHostsThanBefore) {
  const std::string whole = go_on();
  const std::uint64_t changes = disk(1).changes();
  begin_anew();
  ASSERT_FALSE(cut(1, changes / 2)[1].empty());
  const Versions before = versions();
  std::swap(engines_[0], engines_[1]);
  EXPECT_THAT([&] { go_on(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("-rank"), HasSubstr("is on another host"),
                                         HasSubstr("go on as before"))));
  for (int i = 0; i < hosts; ++i) EXPECT_EQ(disk(i).file_system().list(drive).size(), 1u);
  std::swap(engines_[0], engines_[1]);
  EXPECT_EQ(versions(), before);
  EXPECT_TRUE(go_on() == whole);
}

}  // namespace
}  // namespace strata
