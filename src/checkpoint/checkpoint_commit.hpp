#pragma once
// A CheckpointCommit makes a checkpoint out of a partial folder whose files are written and synced.
//
// Thread contract: one thread.

#include <string>

#include "checkpoint_manifest.hpp"
#include "checkpoint_names.hpp"
#include "strata/checkpoint/state_checkpoint.hpp"

namespace strata {

class CheckpointCommit {
 public:
  // `manifest`: its pieces sorted.
  CheckpointCommit(IoEngine& engine, const std::string& directory, CheckpointManifest manifest);

  // Checks the pieces, reads the files back, writes checkpoint.json and renames. Returns the bytes
  // of all files. Throws; then there is a partial folder still, and what stood before stands.
  std::uint64_t run();

 private:
  std::string path(FolderState state) const;
  void check_pieces() const;
  void read_back() const;
  std::uint64_t write_manifest();
  void read_back_manifest(const std::string& path, const std::string& text) const;
  void publish();
  void put_aside();
  void take_back(bool replaces) noexcept;

  IoEngine& engine_;
  FileSystem& files_;
  const std::string directory_;
  const CheckpointManifest manifest_;
};

}  // namespace strata
