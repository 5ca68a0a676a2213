#pragma once
// A state checkpoint is a folder with everything a run needs to go on: the state's vectors, one per
// role and block, whole and without padding, so that it does not matter on which tiers, in which
// tiles, on how many ranks and at which ZeRO stage they lived; and a note of where the run stood.
//
// Folder "checkpoint-<step>": checkpoint.json says what there is, with a checksum of itself; a file
// per vector holds its bytes. Each vector is covered exactly by pieces, as they were written, each
// with its XXH3: a reader reads whole pieces and believes nothing that does not match.
//
// Life. Written as "checkpoint-<step>.partial", read back and verified, by each writer what it
// wrote and while it goes on writing, synced, then renamed by the committing process, and its
// parent synced: a folder without the ending is whole. Removed by renaming to
// "checkpoint-<step>.removing" first; one of a step that is saved again stands aside as
// "checkpoint-<step>.replaced" while the new one takes its name. Whatever dies in between, the next
// start finds only whole ones, and clears away the rest. Everything goes through an IoEngine and
// its FileSystem, so that it is tested on a disk that loses power at every operation.
//
// Formats: docs/design/checkpoints.md. Folders are hostile until checked.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strata/core/dtype.hpp"
#include "strata/io/io_engine.hpp"
#include "strata/program/program.hpp"

namespace strata {

// The vector of one role of one block. Elements lie in order; q8 as regions of norm_chunk_elements
// each (core/block_q8.hpp), the last one shorter.
struct StateVector {
  Role role = Role::master;  // weight, master (f32, also where a run splits it), moment1, moment2
  std::string block;         // its name: "layers.3"
  DType dtype = DType::f32;
  std::int64_t count = 0;
  bool operator==(const StateVector&) const = default;
};
std::string state_vector_name(const StateVector& vector);  // "master/layers.3"
// Bytes of elements [0, count), and where element `first` (a multiple of norm_chunk_elements, or
// the end) begins.
std::uint64_t state_vector_bytes(const StateVector& vector);
std::uint64_t state_vector_offset(const StateVector& vector, std::int64_t first);

// Files of vectors end at a multiple of this; so do the transfers that write and read them.
inline constexpr std::uint64_t checkpoint_alignment = 4096;
// What a folder with these vectors takes on disk, checkpoint.json included if pieces have 1 MiB or
// more: to be known before the run.
std::uint64_t checkpoint_bytes(std::span<const StateVector> vectors,
                               std::uint64_t alignment = checkpoint_alignment);
// Host memory that each writer until it has committed, and each read() and verify() under way, have
// for reading.
inline constexpr std::uint64_t checkpoint_read_memory_bytes = 32ull << 20;

// What an evaluation of a state gave.
struct HeldOutLoss {
  double loss = 0;   // finite
  std::string data;  // fingerprint of the token shards it was taken on
  bool operator==(const HeldOutLoss&) const = default;
};

// Where the run stood: what it needs to go on beside the vectors.
struct RunNote {
  std::int64_t step = 0;             // steps done
  std::int64_t updates_applied = 0;  // of them
  std::int64_t skipped_steps = 0;
  std::int64_t micro_batches_seen = 0;  // of all ranks together: the data position
  std::int64_t rows_per_micro_batch = 0, sequence_length = 0;
  std::uint64_t data_seed = 0, seed = 0;
  std::string data_fingerprint = {};   // of the token shards, in order
  std::string model_fingerprint = {};  // of names and shapes of the model's tensors
  std::string config = {};             // the resolved config, YAML
  std::optional<HeldOutLoss> held_out =
      {};  // none: the state was not evaluated before it was saved
  bool operator==(const RunNote&) const = default;
};

struct CheckpointInfo {
  std::string path;
  RunNote note;
  std::vector<StateVector> vectors;
  std::uint64_t bytes = 0;  // of all files
  std::string strata_version;
};

// One contiguous part of a vector as it lies on disk.
struct StatePiece {
  int vector = 0;  // index
  std::int64_t first = 0, count = 0;
  std::uint64_t checksum = 0;
  bool is_read_back = false;  // its writer has seen it come back from the drive as it was written
};

// Writes a checkpoint. Several processes may each have a writer of one folder on a file system they
// share: each writes other pieces; one of them commits all. Every failure says what was not saved,
// why, how much room there is and what to do; a SystemError keeps its errno (ENOSPC: the disk is
// full). Thread contract: write() and has_failed() from any thread, the rest from one.
class CheckpointWriter {
 public:
  // `creates`: makes the partial folder (an old one of that name is removed first) with the files
  // of all vectors, their space reserved; a process that does not create waits for nobody: the
  // caller sees that it is there. Throws SystemError before anything is written when `vectors` do
  // not fit on the disk.
  static std::unique_ptr<CheckpointWriter> open(IoEngine& engine, const std::string& directory,
                                                std::int64_t step, std::vector<StateVector> vectors,
                                                bool creates);
  // Waits for transfers under way; without commit() by the creator: removes what is there.
  virtual ~CheckpointWriter() = default;

  // Bytes and alignment that the memory given to write() must have: bytes past the piece's own, up
  // to the alignment, are overwritten with zeros by the writer when the piece ends its vector.
  virtual std::uint64_t alignment() const = 0;
  // Starts writing a piece: `first` is a multiple of norm_chunk_elements, and so is its end unless
  // it is the vector's. `memory` holds its bytes (room up to the alignment where it ends the
  // vector), stays alive until completion, and is hashed on the calling thread. Any pieces may be
  // written at the same time, by any writers: those of q8 that may share a block with
  // their neighbours go through the page cache, all others directly to the drive. Those come back
  // while others are written: read from the drive, at the least priority, on a thread of the
  // writer's own, and compared with what was hashed.
  virtual void write(int vector, std::int64_t first, std::int64_t count,
                     std::span<std::byte> memory, IoCompletion& completion) = 0;
  // A write has failed, or a piece did not come back as it was written. Known as soon as that is:
  // from then on write() writes nothing, and completes with ECANCELED; finish() tells what it was.
  virtual bool has_failed() const = 0;
  // Waits for the writes and for what comes back, syncs the files, returns what this writer wrote;
  // nothing may be written afterwards. Throws the first failure: also that a piece is not on the
  // drive as it was written.
  virtual std::vector<StatePiece> finish() = 0;
  // By the creator, after finish(), with the pieces of all writers, its own included: checks that
  // they cover every vector exactly, reads back and verifies what no writer has, writes
  // checkpoint.json, syncs and renames. A checkpoint of the same step is replaced. Throws; then
  // there is no new checkpoint, and what stood before stands; but where the drive goes away for
  // good after the rename, the new one may be there, whole. Returns the bytes of all files.
  virtual std::uint64_t commit(const std::vector<StatePiece>& all, const RunNote& note) = 0;
};

// Thread contract: read() and verify() from any thread.
class CheckpointReader {
 public:
  // Throws FormatError (not a checkpoint, damaged, another format version: says which is needed).
  // Looks at checkpoint.json, and at the length of every file; what the files hold is for read()
  // and verify().
  static std::unique_ptr<CheckpointReader> open(IoEngine& engine, const std::string& path);
  virtual ~CheckpointReader() = default;
  virtual const CheckpointInfo& info() const = 0;
  virtual std::optional<int> find(Role role, std::string_view block) const = 0;
  virtual const std::vector<StatePiece>& pieces() const = 0;
  // Elements [first, first + count) of a vector in its own dtype (`first` and the end multiples of
  // norm_chunk_elements, or the vector's end). Reads and verifies the whole of every piece that it
  // touches, so reads that match the pieces cost least. Throws FormatError that names vector,
  // elements and file, Error when the drive fails.
  virtual void read(int vector, std::int64_t first, std::int64_t count,
                    std::span<std::byte> target) const = 0;
  // Every piece, the zeros behind each vector, and that nothing else is in the folder; what is
  // wrong, a sentence each. `progress` is told the bytes done.
  virtual std::vector<std::string> verify(
      const std::function<void(std::uint64_t bytes)>& progress = {}) const = 0;
};

// --- The checkpoints of one output folder

struct CheckpointEntry {
  std::int64_t step = 0;
  std::string path;
};
// The whole ones, oldest first: folders of that name with a checkpoint.json. Others' (Hugging Face
// writes folders of the same names) are none of ours. None where there is no such directory.
std::vector<CheckpointEntry> list_checkpoints(FileSystem& files, const std::string& directory);
// Removes what runs that died left behind: partial and removing folders, and replaced ones, which
// get their name back where the new one never took it. Returns their names. Whoever calls it owns
// the folder (OutputOwner).
std::vector<std::string> clear_unfinished_checkpoints(FileSystem& files,
                                                      const std::string& directory);
void remove_checkpoint(FileSystem& files, const std::string& path);
// Removes all but the last `keep` (one at least), oldest first; never the one of `verified_step`,
// which is the last that is known to be whole, nor a newer one; nothing where that one is missing.
// Nor the one of `kept_step`, if given, which takes the place of another: where only one is to be
// kept, two are.
void remove_old_checkpoints(FileSystem& files, const std::string& directory, std::int64_t keep,
                            std::int64_t verified_step,
                            std::optional<std::int64_t> kept_step = std::nullopt);

// The one run that writes to an output folder. Held until destroyed; a process that dies gives it
// up.
class OutputOwner {
 public:
  // Throws ConfigError naming the run that has it: pid, host, since when.
  static std::unique_ptr<OutputOwner> take(FileSystem& files, const std::string& directory);
  virtual ~OutputOwner() = default;
};

}  // namespace strata
