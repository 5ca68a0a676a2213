#pragma once
// Every step durable (offload.versioned): master and moments live in versioned stores, one per
// rank, which hold the run's last committed step whatever happens to it. This is where those stores
// are, and what a run goes on from.
//
// versioned_state.json in the output folder says which stores hold the state of its runs; the note
// that each store keeps names the output folder. A store that is being made is in that record
// before it is on a drive, and one that holds nothing any more is until it has been removed: so
// whatever dies in between, the next start knows which stores count, and clears away the rest.
//
// Thread contract: values, and functions of their arguments.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/train/run_config.hpp"

namespace strata {

struct PlannedRun;

// The stores of one run's ranks.
struct StateStores {
  std::string id;  // 16 hex digits, random; empty: none
  int world = 1;
  std::vector<std::string> directories;  // absolute; of each rank's drives, the first with the
                                         // store's first part
  std::string name(int rank) const;      // "strata-state-ID-rank0": the folder on each drive
  std::string path(int rank) const;      // of the first part
  std::string prefix() const;            // of all names
  std::string drives() const;            // "/a, /b": for people
  bool operator==(const StateStores&) const = default;
};

struct StateRecord {
  StateStores current;              // holds the state; without an id: none does
  StateStores next;                 // may be on the drives, and holds nothing yet
  std::vector<StateStores> others;  // hold nothing any more, and may still be on the drives
};
// Empty where there is no record. Throws FormatError when it is damaged.
StateRecord read_state_record(const FileSystem& files, const std::string& output_dir);
// Replaces the one that is there; a record of nothing is removed. Throws ConfigError where too many
// stores could not be removed to be in it.
void write_state_record(FileSystem& files, const std::string& output_dir,
                        const StateRecord& record);
// What they hold of this host's drives.
std::uint64_t bytes_of_stores(const FileSystem& files, const StateStores& stores);
// Throws ConfigError naming the process of this host that uses them.
void check_unused(const StateStores& stores);
// Removes what is on this host's drives of the stores, unless somebody uses it. Returns whether
// nothing is left.
bool remove_stores(FileSystem& files, const StateStores& stores);

// Where a run stood at the last step that all of its ranks have committed.
struct DurablePoint {
  StateStores stores;
  std::uint64_t version = 0;  // the step
  RunNote note;
  std::string output_dir = {};   // of the run that committed it, as the stores' note has it
  std::string describe() const;  // for people: the stores and the step
};

// Gives every process's text, by process; all must call it alike.
using Exchange = std::function<std::vector<std::string>(const std::string& own)>;
Exchange alone();  // of one process

// None where the record names no store. Throws Error when a rank's store is nowhere or damaged, or
// when the ranks' stores have no version in common.
std::optional<DurablePoint> find_durable_point(const FileSystem& files, const StateRecord& record,
                                               const Exchange& exchange);

// What a run goes on from: a checkpoint, or what is durable, or neither; and the stores that it may
// make for its own state.
struct ResumePoint {
  // Each rank opens it anew and closes it when it has its part: what is held open keeps its place
  // on the disk after it is removed.
  std::optional<CheckpointInfo> checkpoint;
  std::optional<DurablePoint> durable;
  StateStores stores;
  // The output folder had this name when the durable state was last committed; empty: it still has.
  std::string moved_from = {};
  const RunNote* note() const;   // null: from the beginning
  std::string describe() const;  // "PATH"
};
// The newer of the newest checkpoint and the stores, or what the config names. Clears away stores
// that hold nothing, and enters in the record what the run may make. Every process of the job must
// call it; the one that leads owns the output folder. Throws as open_resume_point(), and
// ConfigError when there is state that the run was not told to go on from, or that of another
// folder, of which the config's is a copy.
ResumePoint choose_resume_point(const RunConfig& config, IoEngine& engine, const Exchange& exchange,
                                bool leads);

// The record forgets the stores that are gone from the drives of all hosts. Every process must call
// it.
void forget_removed_stores(FileSystem& files, const std::string& output_dir,
                           const Exchange& exchange, bool leads);

// Why the run of a plan cannot go on in the durable stores of `point` as they lie on this host, but
// needs new ones beside them; empty: it can, or it goes on from none.
std::string why_not_in_place(const FileSystem& files, const PlannedRun& run,
                             const ResumePoint& point);

// Bytes that the stores of the config's output folder hold in a directory of offload.nvme_paths.
std::uint64_t durable_bytes_in(const RunConfig& config, const std::string& directory);

// Throws ConfigError where a rank's store is on another host: who is to read all of them in another
// layout than theirs needs them all.
void check_readable_here(const FileSystem& files, const StateStores& stores);

// The state as a checkpoint, whatever the layout of the run that left it. Takes no lock. Throws as
// CheckpointReader::open() and check_readable_here().
std::unique_ptr<CheckpointReader> open_durable_state(IoEngine& engine, const DurablePoint& point);
// Host memory of a rank that loads from there.
std::uint64_t durable_load_bytes(const Program& program);

}  // namespace strata
