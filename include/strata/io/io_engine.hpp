#pragma once
// An IoEngine moves bytes between files and host memory: requests go in, each with a place for its
// answer, and complete in any order. Three implementations keep one contract: `uring` (io_uring),
// `threads` (a pread/pwrite pool) and `sim` (an in-memory disk with seeded latency, reordering,
// short transfers and faults).
//
// Contract. Every completion is checked: a short transfer continues with the remainder, EINTR and
// EAGAIN are retried, and any other failure is reported with operation, path, offset, length, errno
// text and bytes free. Nothing is asserted, nothing is silent. A write is complete when the kernel
// has taken it; sync() makes it durable. Requests on a file opened with O_DIRECT must have offset,
// length and address aligned to FileInfo::alignment; others are refused with an error result.
//
// Thread contract: all methods may be called from any thread. Completions are delivered on the
// engine's threads: they must be short and must not call back into the engine.
//
// Drives. Files on different devices never share a queue: each device has its own, of
// IoOptions::queue_depth, so that a slow drive holds up nobody else's transfers.
//
// Stalls. A transfer that the kernel does not give back cannot be abandoned: the kernel may still
// write to its memory. What an engine can do is say so: see IoOptions::on_stall. Of transfers only:
// nobody watches open(), preallocate(), sync(), close() and the FileSystem, which wait in the
// caller's thread for as long as the kernel does.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/core/strong_id.hpp"
#include "strata/io/file_system.hpp"

namespace strata {

using FileId = StrongId<struct FileTag>;

enum class IoOp : std::uint8_t { read, write };
enum class IoPriority : std::uint8_t { now, prefetch, write_back };
inline constexpr int num_io_priorities = 3;

struct IoResult {
  std::uint64_t bytes = 0;  // transferred; equals the request's length unless failed
  int error_number = 0;     // errno value, 0 on success
  std::string message;      // empty on success; else one complete sentence with all the facts
  bool ok() const { return error_number == 0; }
};

// Caller-owned. Called exactly once per request.
class IoCompletion {
 public:
  virtual ~IoCompletion() = default;
  virtual void complete(const IoResult& result) noexcept = 0;
};

struct IoRequest {
  IoOp op = IoOp::read;
  FileId file = {};
  std::uint64_t offset = 0;
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  IoPriority priority = IoPriority::now;
  IoCompletion* completion = nullptr;
};

enum class OpenMode : std::uint8_t { read_only, read_write_create };
enum class Caching : std::uint8_t {
  direct,  // O_DIRECT where the file system has it, else buffered, with the reason in
           // FileInfo::note
  buffered,
};

struct FileInfo {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint64_t allocated_bytes = 0;  // blocks it holds
  std::uint64_t alignment = 1;        // for offset, length and address; 1 when buffered
  bool direct = false;
  std::string note;  // why a file is not as asked: "O_DIRECT refused by tmpfs: buffered"
};

class IoEngine {
 public:
  virtual ~IoEngine() = default;
  virtual std::string_view name() const = 0;

  // Opens (and creates) a file. Descriptors are long-lived: closed by close() or the destructor.
  // Throws SystemError.
  virtual FileId open(const std::string& path, OpenMode mode, Caching caching) = 0;
  virtual FileInfo info(FileId file) const = 0;
  // Reserves blocks so that later writes cannot run out of space. Throws SystemError with the bytes
  // free.
  virtual void preallocate(FileId file, std::uint64_t bytes) = 0;
  virtual void sync(FileId file) = 0;
  virtual void close(FileId file) = 0;

  // Memory that requests will use often; engines may pin it once. Idempotent; failure to register
  // is a note, not an error. The pages registered are the ones behind these addresses now: before
  // they are unmapped, call unregister_memory(); memory mapped later at the same addresses must be
  // registered anew.
  virtual void register_memory(std::span<std::byte> memory) = 0;
  virtual void unregister_memory(std::span<std::byte>) {}

  virtual void submit(std::span<const IoRequest> requests) = 0;
  // Gives up the requests that carry `completion`: no further piece of them goes to the kernel.
  // Each completes with ECANCELED, once its pieces in flight have ended, unless the last of it was
  // already under way: then it completes as if nothing had been said. Returns how many were given
  // up. Does not wait.
  virtual std::size_t cancel(const IoCompletion& completion) = 0;
  // Blocks until every request submitted before has completed.
  virtual void drain() = 0;

  // Names, directories and small files on the disks that this engine reaches.
  virtual FileSystem& file_system() = 0;

  // One line for the log: engine, why it was chosen, depth, registered buffers or the reason there
  // are none.
  virtual std::string describe() const = 0;
};

// One transfer, waited for. Throws Error with the result's message on failure.
void transfer(IoEngine& engine, const IoRequest& request);

struct IoOptions {
  int queue_depth = 32;                    // pieces in flight at the kernel per device
  std::uint64_t chunk_bytes = 4ull << 20;  // larger requests are cut into pieces of this size
  int num_threads = 4;                     // `threads` engine

  // Called when the kernel has held a transfer for `stall_seconds`, and again each time as long has
  // passed without a completion: for how many seconds its device has had something to give back and
  // has given nothing (little where others complete), and a text that lists every transfer in
  // flight there (operation, path, offset, bytes, age). Time in which the process did not run is
  // not counted. Always from the same thread of the engine; must not call back into it. Empty:
  // nobody is told.
  std::function<void(double silent_seconds, const std::string& in_flight)> on_stall = {};
  double stall_seconds = 30;
};
std::unique_ptr<IoEngine> make_threads_engine(const IoOptions& options);
// Throws SystemError when the kernel refuses io_uring (seccomp, sysctl, too old).
std::unique_ptr<IoEngine> make_uring_engine(const IoOptions& options);
// "auto" (uring, else threads, with the reason in describe()), "uring" or "threads". Throws
// ConfigError for other names.
std::unique_ptr<IoEngine> make_io_engine(std::string_view name, const IoOptions& options);

// The simulated disk. Bytes live in memory; time is real but short. A directory that nobody made,
// outside of those that were made, and that was not removed or lost in a power cut, is taken to
// have been there from the start as soon as something is put into it.
struct SimFault {
  std::uint64_t at_operation = 0;  // counts kernel-level transfers (pieces), from 0
  int error_number = 0;            // e.g. EIO, ENOSPC; 0: a short transfer of half the piece
};
struct SimOptions {
  std::uint64_t seed = 1;
  std::uint64_t alignment = 4096;
  std::uint64_t capacity_bytes = ~std::uint64_t{0};
  // Uniform in [0, max] per piece, from the seed; completions reorder.
  std::int64_t latency_us_max = 0;
  double short_transfer_probability = 0;
  double again_probability = 0;  // EAGAIN, retried by the engine
  std::vector<SimFault> faults = {};
  std::uint64_t chunk_bytes = 1ull << 20;
  // The power fails at this operation: it and all that follow fail with EIO and change nothing,
  // until cut_power() has settled what survived and the machine is up again. Counts everything that
  // changes the disk: pieces written, preallocations, syncs, files created, and what FileSystem
  // does to names, directories and small files (write_file: up to three). Reads go on.
  std::uint64_t power_fails_at_change = ~std::uint64_t{0};

  // As IoOptions have them.
  std::function<void(double silent_seconds, const std::string& in_flight)> on_stall = {};
  double stall_seconds = 30;
};
class SimEngine : public IoEngine {
 public:
  // The "machine" restarts with what a real disk may have kept: everything synced, and of the rest
  // a part drawn from the seed. Of unsynced writes any subset of sectors survives (of `alignment`
  // bytes, whole); of unsynced changes to names in a directory, the first few, in order; a file
  // whose name survived but whose bytes were never synced has any of them as zeros. With seed 0
  // nothing unsynced survives. Nobody holds a lock any more. Files that are open stay open, with
  // the bytes that survived, even where their names did not.
  virtual void cut_power() = 0;
  // The power fails at that change instead. Where it has failed already, only the process died:
  // nothing is lost, what was not synced is still not durable, and what follows works again.
  virtual void power_fails_at(std::uint64_t change) = 0;
  virtual std::uint64_t changes() const = 0;  // operations counted so far
};
std::unique_ptr<SimEngine> make_sim_engine(const SimOptions& options);

}  // namespace strata
