// The power fails at every change that a long random history makes to its two drives, one after the
// other, each time in a run of its own; or only the process dies there, another one goes on with
// the store, and the power fails a few changes later. Afterwards the store opens at exactly the
// last committed version, or, when the cut fell inside a commit, at that or the one being
// committed, whole. What a process has opened counts as committed.

#include <deque>
#include <optional>
#include <set>

#include "support/sanitizers.hpp"
#include "unit/io/shard_store_testing.hpp"

namespace strata::testing {
namespace {

constexpr int num_tiles = 7;
constexpr const char* path = "/a/run";

using Stamps = std::vector<std::uint64_t>;  // by tile; 0: never written

struct Version {
  std::optional<std::uint64_t> number;
  Stamps stamps = Stamps(num_tiles, 0);
  std::string note() const { return number ? "step " + std::to_string(*number) : ""; }
};

class History {
 public:
  History(std::uint64_t seed, std::uint64_t power_fails_at)
      : random_(seed, 1),
        engine_(make_sim_engine(
            {.seed = seed, .chunk_bytes = 4096, .power_fails_at_change = power_fails_at})) {}

  // Whether it came to its end.
  bool run() {
    return ends([&] { live(); });
  }
  // Whether another process did, after the one in run() died; the power fails so many changes
  // later.
  bool run_again(std::uint64_t changes_later) {
    engine_->power_fails_at(engine_->changes() + changes_later);
    return ends([&] { live_again(); });
  }
  std::uint64_t changes() const { return engine_->changes(); }

  void restart() { engine_->cut_power(); }

  // What the store must be after a restart, and that it is as good as any.
  void check() {
    if (!is_made_) return check_unmade();
    store_ = ShardStore::open(*engine_, path, verified);
    check_version();
    go_on();
  }

 private:
  template <typename Life>
  bool ends(Life life) {
    bool at_its_end = true;
    try {
      life();
    } catch (const Error&) {
      at_its_end = false;
    }
    store_.reset();
    return at_its_end;
  }

  void live() {
    create();
    for (int commit = 1; commit <= 14; ++commit) {
      if (random_.next_below(4) == 0) reopen();
      write_some();
      read_some();
      commit_as(static_cast<std::uint64_t>(commit) * 10);
    }
    write_some();
  }

  void live_again() {
    take_up();
    if (::testing::Test::HasFatalFailure()) return;
    present_ = committed_.stamps;
    const std::uint64_t next = committed_.number.value_or(0) + 1;
    for (std::uint64_t commit = 0; commit < 3; ++commit) {
      write_some();
      if (random_.next_below(2) == 0) commit_as(next + commit);
    }
  }

  void take_up() {
    is_made_ = is_made_ || is_store_now();
    if (!is_made_) return create();
    store_ = ShardStore::open(*engine_, path, verified);
    check_version();
  }

  // As users see it: there is a first part, and it is not marked.
  bool is_store_now() const {
    const FileSystem& files = engine_->file_system();
    return files.exists(std::string(path) + "/store.json") &&
           !files.exists(std::string(path) + "/unfinished");
  }

  void create() {
    store_ = ShardStore::create(*engine_, small_spec(StoreKind::versioned, {"/a", "/b"}, num_tiles),
                                verified);
    is_made_ = true;
  }

  void reopen() {
    store_.reset();
    present_ = committed_.stamps;
    store_ = ShardStore::open(*engine_, path, verified);
  }

  // Several at a time, some twice.
  void write_some() {
    for (std::uint64_t round = 1 + random_.next_below(2); round > 0; --round) {
      std::set<int> tiles;
      for (std::uint64_t i = random_.next_below(5); i > 0; --i)
        tiles.insert(static_cast<int>(random_.next_below(num_tiles)));
      write_together(tiles);
    }
  }
  void write_together(const std::set<int>& tiles) {
    std::deque<Outcome> outcomes;
    std::vector<Buffer> buffers;
    for (int tile : tiles) {
      present_[static_cast<std::size_t>(tile)] = ++stamp_;
      buffers.push_back(tile_bytes(*store_, tile, stamp_));
      store_->submit(IoOp::write, tile, buffers.back().span(), IoPriority::write_back,
                     outcomes.emplace_back());
    }
    std::string failures;
    for (Outcome& outcome : outcomes) failures += outcome.wait().message;
    if (!failures.empty()) throw Error(failures);
  }

  void read_some() {
    for (int tile = 0; tile < num_tiles; ++tile) {
      const std::uint64_t stamp = present_[static_cast<std::size_t>(tile)];
      if (stamp == 0 || random_.next_below(3) != 0) continue;
      EXPECT_TRUE(holds(*store_, tile, stamp));
    }
  }

  void commit_as(std::uint64_t number) {
    committing_ = Version{number, present_};
    store_->commit(number, committing_->note());
    committed_ = *std::exchange(committing_, std::nullopt);
  }

  void check_unmade() {
    // Either it was made, and nobody had been told yet, or it says that it is none.
    const auto message = error_of([&] { ShardStore::open(*engine_, path, verified); });
    if (message == "no error") {
      is_made_ = true;
      return check();
    }
    EXPECT_THAT(message, ::testing::HasSubstr("no store"));
    create();
    check_version();
    go_on();
  }

  void check_version() {
    const auto found = store_->committed_version();
    if (committing_ && found == committing_->number) committed_ = *committing_;
    committing_.reset();
    ASSERT_EQ(found, committed_.number);
    EXPECT_EQ(store_->committed_note(), committed_.note());
    for (int tile = 0; tile < num_tiles; ++tile) check_tile(tile);
  }

  void check_tile(int tile) {
    const std::uint64_t stamp = committed_.stamps[static_cast<std::size_t>(tile)];
    if (stamp != 0) {
      EXPECT_TRUE(holds(*store_, tile, stamp));
    } else {
      EXPECT_THAT(error_of([&] { (void)holds(*store_, tile, 1); }),
                  ::testing::HasSubstr("nothing was ever written"));
    }
  }

  void go_on() {
    if (::testing::Test::HasFatalFailure()) return;
    for (int tile = 0; tile < num_tiles; ++tile) write_tile(*store_, tile, 1000 + stamp_);
    store_->commit(committed_.number.value_or(0) + 1, "");
    store_ = nullptr;
    store_ = ShardStore::open(*engine_, path, verified);
    for (int tile = 0; tile < num_tiles; ++tile) EXPECT_TRUE(holds(*store_, tile, 1000 + stamp_));
  }

  PhiloxStream random_;
  std::unique_ptr<SimEngine> engine_;
  std::unique_ptr<ShardStore> store_;
  bool is_made_ = false;
  Version committed_;
  std::optional<Version> committing_;
  Stamps present_ = Stamps(num_tiles, 0);
  std::uint64_t stamp_ = 0;
};

class StorePowerCut : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(StorePowerCut, AtAnyChangeLeavesExactlyTheLastCommittedVersion) {
  History whole(GetParam(), ~std::uint64_t{0});
  ASSERT_TRUE(whole.run());
  const std::uint64_t changes = whole.changes();
  EXPECT_GT(changes, 200u);
  const auto stride = static_cast<std::uint64_t>(rounds(1, 7));
  for (std::uint64_t at = GetParam() % stride; at < changes; at += stride) {
    SCOPED_TRACE("power fails at change " + std::to_string(at) + " of " + std::to_string(changes));
    History history(GetParam(), at);
    EXPECT_FALSE(history.run());
    history.restart();
    history.check();
    if (HasFailure()) return;
  }
}

TEST_P(StorePowerCut, AfterAProcessDiedAtAnyChangeLeavesTheVersionThatTheNextOneOpened) {
  History whole(GetParam(), ~std::uint64_t{0});
  ASSERT_TRUE(whole.run());
  const std::uint64_t changes = whole.changes();
  const auto stride = static_cast<std::uint64_t>(rounds(1, 23));
  for (std::uint64_t at = GetParam() % stride; at < changes; at += stride) {
    for (std::uint64_t later = at % 16; later < 32; later += 16) {
      SCOPED_TRACE("process dies at change " + std::to_string(at) + " of " +
                   std::to_string(changes) + ", power fails " + std::to_string(later) + " later");
      History history(GetParam(), at);
      EXPECT_FALSE(history.run());
      history.run_again(later);
      if (HasFailure()) return;
      history.restart();
      history.check();
      if (HasFailure()) return;
    }
  }
}

// A store that is whole survives, too, when nothing fails but the power at its end.
TEST_P(StorePowerCut, AfterTheEndLeavesTheLastCommittedVersion) {
  History history(GetParam(), ~std::uint64_t{0});
  ASSERT_TRUE(history.run());
  history.restart();
  history.check();
}

// Nobody can tell whether a commit whose rename failed will be there after a restart.
TEST(ShardStoreInDoubt, TakesNoMoreWritesUntilItIsOpenedAgain) {
  const auto spec = small_spec(StoreKind::versioned, {"/a"}, 3);
  const auto changes_until_rename = [&] {
    const auto engine = make_sim_engine({});
    const auto store = ShardStore::create(*engine, spec, verified);
    write_tile(*store, 0, 1);
    store->commit(1, "");
    return engine->changes() - 2;  // the rename and the flush of the directory
  };
  const auto engine = make_sim_engine({.power_fails_at_change = changes_until_rename()});
  auto store = ShardStore::create(*engine, spec, verified);
  write_tile(*store, 0, 1);
  EXPECT_THAT(error_of([&] { store->commit(1, ""); }), ::testing::HasSubstr("rename"));
  const auto in_doubt = ::testing::HasSubstr("not known whether the last commit took effect");
  EXPECT_THAT(error_of([&] { write_tile(*store, 0, 2); }), in_doubt);
  EXPECT_THAT(error_of([&] { store->commit(2, ""); }), in_doubt);
  EXPECT_TRUE(holds(*store, 0, 1));
  EXPECT_EQ(store->committed_version(), std::nullopt);
  store.reset();
  engine->cut_power();
  write_tile(*ShardStore::open(*engine, "/a/run", verified), 0, 2);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StorePowerCut, ::testing::Values(0, 1, 2, 3));

}  // namespace
}  // namespace strata::testing
