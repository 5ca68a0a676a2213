// What the engines do where the system refuses something. Children of the test give up the rights.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "contract/io/io_testing.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "support/forked_child.hpp"
#include "support/sanitizers.hpp"

namespace strata::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// io_uring_setup gives `error_number` from now on, as under the default profile of containers.
bool refuse_io_uring(int error_number) {
  std::array<sock_filter, 4> code = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K,
               SECCOMP_RET_ERRNO | static_cast<unsigned>(error_number & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program = {.len = code.size(), .filter = code.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

std::string write_and_read(IoEngine& engine, const std::string& path) {
  const FileId file = engine.open(path, OpenMode::read_write_create, Caching::direct);
  const auto written = Buffer::random(1 * MiB, 1);
  const Buffer got(1 * MiB);
  transfer(engine, request(IoOp::write, file, 0, written.span()));
  transfer(engine, request(IoOp::read, file, 0, got.span()));
  return got == written ? "the same bytes" : "other bytes";
}

class RefusedIoUring : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Errors, RefusedIoUring, ::testing::Values(EPERM, ENOSYS));

TEST_P(RefusedIoUring, MakesAutoTakeThreadsAndSayWhy) {
  const TempDirectory directory;
  const std::string said = in_child([&]() -> std::string {
    if (!refuse_io_uring(GetParam())) return "skip: no seccomp";
    const auto engine = make_io_engine("auto", {});
    return std::string(engine->name()) + "|" + engine->describe() + "|" +
           write_and_read(*engine, directory.file("tiles"));
  });
  if (said.starts_with("skip")) GTEST_SKIP() << said;
  EXPECT_THAT(said, StartsWith("threads|"));
  EXPECT_THAT(said, HasSubstr("cannot start io_uring"));
  EXPECT_THAT(said, HasSubstr("errno " + std::to_string(GetParam())));
  EXPECT_THAT(said, HasSubstr("|the same bytes"));
}

TEST_P(RefusedIoUring, IsAnErrorWhereItWasAskedForByName) {
  const std::string said = in_child([&]() -> std::string {
    if (!refuse_io_uring(GetParam())) return "skip: no seccomp";
    make_io_engine("uring", {});
    return "made an engine";
  });
  if (said.starts_with("skip")) GTEST_SKIP() << said;
  EXPECT_THAT(said, StartsWith("threw: cannot start io_uring"));
  EXPECT_THAT(said, HasSubstr("errno " + std::to_string(GetParam())));
}

TEST(RefusedMemory, LeavesBuffersUnregisteredWithTheLimitToRaise) {
  const TempDirectory directory;
  ::chmod(directory.path().c_str(), 0777);
  const std::string said = in_child([&]() -> std::string {
    const rlimit low = {64 * KiB, 64 * KiB};
    if (::setrlimit(RLIMIT_MEMLOCK, &low) != 0 || !drop_rights()) return "skip: no rights to drop";
    const auto memory = Buffer::random(4 * MiB, 1);
    if (::mlock(memory.data(), memory.bytes()) == 0) return "skip: RLIMIT_MEMLOCK does not hold";
    std::unique_ptr<IoEngine> engine;
    try {
      engine = make_uring_engine({});
    } catch (const SystemError& error) {
      return std::string("skip: ") + error.what();
    }
    engine->register_memory(memory.span());
    return engine->describe() + "|" + write_and_read(*engine, directory.file("tiles"));
  });
  if (said.starts_with("skip")) GTEST_SKIP() << said;
  EXPECT_THAT(said, HasSubstr("no registered buffers (4.00 MiB not registered"));
  EXPECT_THAT(said, HasSubstr("RLIMIT_MEMLOCK is 64.0 KiB, raise it (ulimit -l)"));
  EXPECT_THAT(said, HasSubstr("|the same bytes"));
}

TEST(RefusedDirectIo, IsBufferedWithTheReason) {
  // No file of /proc has direct I/O.
  const auto engine = make_threads_engine({});
  const FileId file = engine->open("/proc/self/status", OpenMode::read_only, Caching::direct);
  const FileInfo info = engine->info(file);
  EXPECT_FALSE(info.direct);
  EXPECT_EQ(info.alignment, 1u);
  EXPECT_EQ(info.note, "O_DIRECT refused by the file system: buffered");
}

TEST(RefusedDirectory, ReadOnlyGivesAnErrorThatNamesThePath) {
  const TempDirectory directory;
  ::chmod(directory.path().c_str(), 0555);
  const std::string said = in_child([&]() -> std::string {
    if (!drop_rights()) return "skip: no rights to drop";
    const auto engine = make_io_engine("auto", {});
    FileSystem& files = engine->file_system();
    const std::string path = directory.file("tiles");
    const std::vector<std::function<void()>> actions = {
        [&] { engine->open(path, OpenMode::read_write_create, Caching::direct); },
        [&] { files.write_file(path, {}); },
        [&] { files.make_directory(path); },
        [&] { files.try_lock(path); },
    };
    std::string refused;
    for (const auto& action : actions) {
      try {
        action();
        refused += "done;";
      } catch (const SystemError& error) {
        const bool named = std::string(error.what()).find(path) != std::string::npos;
        refused += error.error_number() == EACCES && named ? "EACCES;" : error.what();
      }
    }
    return refused;
  });
  ::chmod(directory.path().c_str(), 0755);
  if (said.starts_with("skip")) GTEST_SKIP() << said;
  EXPECT_EQ(said, "EACCES;EACCES;EACCES;EACCES;");
}

TEST(RefusedDirectory, VanishedLeavesOpenFilesWorkingAndNewOnesAnError) {
  for (const char* name : {"auto", "threads"}) {
    const auto engine = make_io_engine(name, {});
    TempDirectory directory;
    const auto data = Buffer::random(64 * KiB, 1);
    const FileId file =
        engine->open(directory.file("tiles"), OpenMode::read_write_create, Caching::direct);
    std::filesystem::remove_all(directory.path());
    const Buffer got(64 * KiB);
    EXPECT_TRUE(run(*engine, IoOp::write, file, 0, data.span()).ok());
    engine->sync(file);
    EXPECT_TRUE(run(*engine, IoOp::read, file, 0, got.span()).ok());
    EXPECT_TRUE(got == data);
    // The message of a failure can still be put together.
    EXPECT_EQ(run(*engine, IoOp::read, file, 64 * KiB, got.span()).error_number, ENODATA);
    try {
      engine->open(directory.file("more"), OpenMode::read_write_create, Caching::direct);
      FAIL() << "opened a file in a directory that is gone";
    } catch (const SystemError& error) {
      EXPECT_EQ(error.error_number(), ENOENT);
      EXPECT_THAT(error.what(), HasSubstr(directory.file("more")));
    }
  }
}

TEST(RefusedDescriptors, RunningOutGivesAnErrorThatNamesThePath) {
  if (sanitized) GTEST_SKIP() << "UBSan needs a descriptor to look at an object's type";
  const TempDirectory directory;
  const std::string said = in_child([&]() -> std::string {
    const auto engine = make_io_engine("threads", {});
    const rlimit low = {40, 40};
    if (::setrlimit(RLIMIT_NOFILE, &low) != 0) return "skip: no limit";
    for (int index = 0; index < 100; ++index) {
      engine->open(directory.file(std::to_string(index)), OpenMode::read_write_create,
                   Caching::buffered);
    }
    return "opened them all";
  });
  if (said.starts_with("skip")) GTEST_SKIP() << said;
  EXPECT_THAT(said, StartsWith("threw: cannot open " + directory.path()));
  EXPECT_THAT(said, HasSubstr("Too many open files"));
}

}  // namespace
}  // namespace strata::testing
