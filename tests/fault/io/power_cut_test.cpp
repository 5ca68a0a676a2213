// What the simulated disk has after a power cut: everything that was flushed, and of the rest what
// a real disk might have kept.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>

#include "contract/io/io_testing.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t seeds = 60;
const std::string root = "/sim/store";

void write(FileSystem& files, const std::string& name, const std::string& text) {
  files.write_file(root + "/" + name, std::as_bytes(std::span(text)));
}

std::string read(FileSystem& files, const std::string& name) {
  const auto bytes = files.read_file(root + "/" + name, 1 * MiB);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

FileId open(IoEngine& engine, const std::string& name = "tiles") {
  return engine.open(root + "/" + name, OpenMode::read_write_create, Caching::direct);
}

Buffer filled(std::uint64_t bytes, char with) {
  Buffer buffer(bytes);
  std::ranges::fill(buffer.span(), static_cast<std::byte>(with));
  return buffer;
}

Buffer contents(IoEngine& engine, FileId file, std::uint64_t bytes) {
  Buffer got(bytes);
  EXPECT_TRUE(run(engine, IoOp::read, file, 0, got.span()).ok());
  return got;
}

// A disk with a durable directory.
std::unique_ptr<SimEngine> make_disk(SimOptions options) {
  auto engine = make_sim_engine(options);
  engine->file_system().make_directory(root);
  engine->file_system().sync_directory("/sim");
  return engine;
}

TEST(PowerCut, KeepsWhatWasFlushedAndWithSeedZeroNothingElse) {
  const auto engine = make_disk({.seed = 0});
  const FileId file = open(*engine);
  const auto durable = Buffer::random(256 * KiB, 1), lost = Buffer::random(128 * KiB, 2);
  EXPECT_TRUE(run(*engine, IoOp::write, file, 0, durable.span()).ok());
  engine->sync(file);
  engine->file_system().sync_directory(root);
  EXPECT_TRUE(run(*engine, IoOp::write, file, 64 * KiB, lost.span()).ok());
  EXPECT_TRUE(run(*engine, IoOp::write, file, 256 * KiB, lost.span()).ok());
  write(engine->file_system(), "unnamed", "flushed, but its name was not");
  engine->cut_power();
  EXPECT_THAT(engine->file_system().list(root), ElementsAre("tiles"));
  EXPECT_EQ(engine->info(file).bytes, 256 * KiB);
  EXPECT_TRUE(contents(*engine, file, 256 * KiB) == durable);
  EXPECT_TRUE(contents(*engine, open(*engine), 256 * KiB) == durable);
}

TEST(PowerCut, KeepsAnySubsetOfTheUnflushedSectorsEachWhole) {
  constexpr std::uint64_t sector = 512, count = 64;
  std::set<std::uint64_t> counts;
  std::set<bool> first_kept_alone, last_kept_alone;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto engine = make_disk({.seed = seed, .alignment = sector});
    const FileId file = open(*engine);
    run(*engine, IoOp::write, file, 0, filled(count * sector, 'o').span());
    engine->sync(file);
    run(*engine, IoOp::write, file, 0, filled(count * sector, 'n').span());
    engine->cut_power();
    const Buffer got = contents(*engine, file, count * sector);
    std::vector<bool> kept;
    for (std::uint64_t at = 0; at < count * sector; at += sector) {
      const auto one = got.span().subspan(at, sector);
      EXPECT_TRUE(std::ranges::all_of(one, [&](std::byte byte) { return byte == one[0]; }));
      kept.push_back(one[0] == std::byte{'n'});
    }
    counts.insert(static_cast<std::uint64_t>(std::ranges::count(kept, true)));
    first_kept_alone.insert(kept.front() && !kept.back());
    last_kept_alone.insert(!kept.front() && kept.back());
  }
  EXPECT_TRUE(counts.contains(0)) << "all lost";
  EXPECT_TRUE(counts.contains(count)) << "all kept";
  EXPECT_GT(counts.size(), 5u) << "and parts of many sizes";
  EXPECT_EQ(first_kept_alone.size(), 2u) << "in any order";
  EXPECT_EQ(last_kept_alone.size(), 2u);
}

TEST(PowerCut, MayKeepALaterWriteAndLoseAnEarlierOne) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto engine = make_disk({.seed = seed});
    const FileId file = open(*engine);
    run(*engine, IoOp::write, file, 0, filled(8 * KiB, 'o').span());
    engine->sync(file);
    run(*engine, IoOp::write, file, 0, filled(4 * KiB, 'a').span());
    run(*engine, IoOp::write, file, 4 * KiB, filled(4 * KiB, 'b').span());
    engine->cut_power();
    const Buffer got = contents(*engine, file, 8 * KiB);
    seen.insert({static_cast<char>(got.data()[0]), static_cast<char>(got.data()[4 * KiB])});
  }
  EXPECT_THAT(seen, ElementsAre("ab", "ao", "ob", "oo"));
}

TEST(PowerCut, MayKeepAnEarlierWriteOfASectorThatWasWrittenAgain) {
  std::set<char> seen;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto engine = make_disk({.seed = seed});
    const FileId file = open(*engine);
    for (const char with : {'o', 'a', 'b'}) {
      run(*engine, IoOp::write, file, 0, filled(4 * KiB, with).span());
      if (with == 'o') engine->sync(file);
    }
    engine->cut_power();
    seen.insert(static_cast<char>(contents(*engine, file, 4 * KiB).data()[0]));
  }
  EXPECT_EQ(seen, (std::set<char>{'o', 'a', 'b'}));
}

TEST(PowerCut, MayKeepANameWhoseBytesAreMissing) {
  std::set<std::uint64_t> lengths;
  std::set<bool> zeros;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto engine = make_disk({.seed = seed});
    const FileId file = open(*engine);
    run(*engine, IoOp::write, file, 0, filled(16 * KiB, 'x').span());
    engine->file_system().sync_directory(root);
    engine->cut_power();
    EXPECT_THAT(engine->file_system().list(root), ElementsAre("tiles"));
    const std::uint64_t bytes = engine->file_system().file_bytes(root + "/tiles");
    lengths.insert(bytes);
    const Buffer got = contents(*engine, open(*engine), bytes);
    const auto num_zeros = std::ranges::count(got.span(), std::byte{0});
    EXPECT_EQ(num_zeros + std::ranges::count(got.span(), std::byte{'x'}),
              static_cast<std::ptrdiff_t>(bytes));
    zeros.insert(num_zeros > 0);
  }
  EXPECT_THAT(lengths, ElementsAre(0, 16 * KiB));
  EXPECT_EQ(zeros.size(), 2u);
}

TEST(PowerCut, KeepsTheFirstFewUnflushedNamesInOrder) {
  const std::vector<std::string> names = {"a", "b", "c", "d", "e"};
  std::set<std::size_t> counts;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto engine = make_disk({.seed = seed});
    for (const std::string& name : names) write(engine->file_system(), name, name);
    engine->cut_power();
    const auto kept = engine->file_system().list(root);
    EXPECT_TRUE(std::ranges::equal(kept, std::span(names).first(kept.size())));
    for (const std::string& name : kept) EXPECT_EQ(read(engine->file_system(), name), name);
    counts.insert(kept.size());
  }
  EXPECT_THAT(counts, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(PowerCut, FindsTheOldFileOrTheNewOneAfterARename) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed <= seeds; ++seed) {
    const auto engine = make_disk({.seed = seed});
    FileSystem& files = engine->file_system();
    write(files, "manifest", "old");
    files.sync_directory(root);
    write(files, "manifest.new", "new");
    files.rename(root + "/manifest.new", root + "/manifest");
    engine->cut_power();
    seen.insert(read(files, "manifest"));
    EXPECT_EQ(files.exists(root + "/manifest.new") && read(files, "manifest") == "new", false);
    write(files, "manifest.new", "newer");
    files.rename(root + "/manifest.new", root + "/manifest");
    files.sync_directory(root);
    engine->cut_power();
    EXPECT_EQ(read(files, "manifest"), "newer");
  }
  EXPECT_THAT(seen, ElementsAre("new", "old"));
}

TEST(PowerCut, MovesAFileBetweenDirectoriesWholeOrNotAtAll) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed <= seeds; ++seed) {
    const auto engine = make_disk({.seed = seed});
    FileSystem& files = engine->file_system();
    files.make_directory(root + "/one");
    files.make_directory(root + "/two");
    files.sync_directory(root);
    write(files, "one/file", "x");
    files.sync_directory(root + "/one");
    write(files, "one/other", "y");
    files.rename(root + "/one/file", root + "/two/file");
    if (seed % 2 == 1) files.sync_directory(root + "/two");
    engine->cut_power();
    const bool in_one = files.exists(root + "/one/file"), in_two = files.exists(root + "/two/file");
    EXPECT_NE(in_one, in_two) << seed;
    EXPECT_TRUE(in_one || files.exists(root + "/one/other")) << "the change before it, " << seed;
    EXPECT_TRUE(in_two || seed % 2 == 0) << "flushed, " << seed;
    seen.insert(in_one ? "one" : "two");
  }
  EXPECT_THAT(seen, ElementsAre("one", "two"));
}

TEST(PowerCut, MayBringBackWhatWasRemoved) {
  std::set<bool> seen;
  for (std::uint64_t seed = 0; seed <= seeds; ++seed) {
    const auto engine = make_disk({.seed = seed});
    FileSystem& files = engine->file_system();
    write(files, "file", "x");
    files.sync_directory(root);
    files.remove(root + "/file");
    engine->cut_power();
    const bool back = files.exists(root + "/file");
    EXPECT_EQ(back ? read(files, "file") : "x", "x");
    seen.insert(back);
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST(PowerCut, LosesADirectoryWithAllThatIsInIt) {
  const auto engine = make_disk({.seed = 0});
  FileSystem& files = engine->file_system();
  files.make_directory(root + "/below");
  write(files, "below/file", "x");
  files.sync_directory(root + "/below");  // its own name was not flushed
  engine->cut_power();
  EXPECT_THAT(files.list(root), IsEmpty());
  EXPECT_THROW(write(files, "below/file", "x"), SystemError);
}

TEST(PowerCut, FreesLocksAndAnOldHolderTakesNothingFromTheNewOne) {
  const auto engine = make_disk({});
  FileSystem& files = engine->file_system();
  auto old_holder = files.try_lock(root + "/lock");
  files.sync_directory(root);
  engine->cut_power();
  const auto new_holder = files.try_lock(root + "/lock");
  EXPECT_NE(new_holder, nullptr);
  old_holder.reset();
  EXPECT_EQ(files.try_lock(root + "/lock"), nullptr);
}

TEST(PowerCut, RepeatsForASeed) {
  const auto survivors = [](std::uint64_t seed) {
    const auto engine = make_disk({.seed = seed, .alignment = 512});
    const FileId file = open(*engine);
    run(*engine, IoOp::write, file, 0, filled(32 * KiB, 'x').span());
    for (const char* name : {"a", "b", "c"}) write(engine->file_system(), name, name);
    engine->cut_power();
    return std::pair(engine->file_system().list(root),
                     std::ranges::count(contents(*engine, file, engine->info(file).bytes).span(),
                                        std::byte{'x'}));
  };
  std::set<std::pair<std::vector<std::string>, std::ptrdiff_t>> seen;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(survivors(seed), survivors(seed));
    seen.insert(survivors(seed));
  }
  EXPECT_GT(seen.size(), 5u);
}

// A little of everything that changes a disk.
void write_history(IoEngine& engine) {
  FileSystem& files = engine.file_system();
  const FileId file = open(engine);
  engine.preallocate(file, 64 * KiB);
  transfer(engine, request(IoOp::write, file, 0, filled(16 * KiB, 'x').span()));
  engine.sync(file);
  write(files, "manifest.new", "text");
  files.rename(root + "/manifest.new", root + "/manifest");
  files.sync_directory(root);
  if (!files.exists(root + "/below")) files.make_directory(root + "/below");
  files.remove(root + "/below");
  write(files, "manifest", "longer text");
}

TEST(PowerFailure, ComesAtAnyChangeAndLetsNoneThrough) {
  const auto whole = make_disk({});
  const std::uint64_t before = whole->changes();
  write_history(*whole);
  // Created, reserved, 1 piece, flushed; created, written, flushed; renamed, flushed, made,
  // removed; cut, written, flushed.
  EXPECT_EQ(whole->changes() - before, 14u);
  for (std::uint64_t at = before; at < whole->changes(); ++at) {
    const auto engine = make_disk({.seed = at, .power_fails_at_change = at});
    EXPECT_THROW(write_history(*engine), Error) << at;
    FileSystem& files = engine->file_system();
    const auto names = files.list(root);
    EXPECT_THROW(write(files, "later", "x"), SystemError);
    EXPECT_THROW(files.make_directory(root + "/later"), SystemError);
    EXPECT_THROW(files.sync_directory(root), SystemError);
    EXPECT_EQ(files.list(root), names) << "nothing changes without power";
    engine->cut_power();
    write_history(*engine);
    EXPECT_EQ(read(files, "manifest"), "longer text");
  }
}

TEST(PowerFailure, FailsAWriteWithTheFactsAndLeavesTheSectorsAlone) {
  const auto engine = make_disk({.seed = 0, .chunk_bytes = 8 * KiB, .power_fails_at_change = 7});
  const FileId file = open(*engine);  // change 2
  run(*engine, IoOp::write, file, 0, filled(16 * KiB, 'o').span());
  engine->sync(file);  // change 5
  const IoResult result =
      run(*engine, IoOp::write, file, 0, filled(16 * KiB, 'n').span());  // 6 and 7
  EXPECT_EQ(result.error_number, EIO);
  EXPECT_THAT(result.message, ::testing::HasSubstr(root + "/tiles"));
  engine->cut_power();
  EXPECT_TRUE(contents(*engine, file, 16 * KiB) == filled(16 * KiB, 'o'));
}

}  // namespace
}  // namespace strata::testing
