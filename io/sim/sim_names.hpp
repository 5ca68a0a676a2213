#pragma once
// SimNames are the directories of the simulated disk: the tree that programs see, the one that is
// durable, and the changes on the way from the one to the other, in order. A power cut keeps the
// first few changes of each directory; a rename between two of them happens in both or in neither.
//
// A directory that nobody made, outside of those that were made, and that was not removed or lost,
// is taken to have been there from the start (and to be durable) as soon as something is put into
// it.
//
// Thread contract: none of its own; the SimDisk guards it.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/sim/sim_inode.hpp"

namespace strata {

struct SimDirectory;

// A file, a directory, or nothing.
struct SimNode {
  std::shared_ptr<SimInode> file;
  std::shared_ptr<SimDirectory> directory;
  bool empty() const { return file == nullptr && directory == nullptr; }
};

struct SimDirectory {
  using Entries = std::map<std::string, SimNode>;
  Entries seen, durable;
  bool made = true;  // not one that is taken to have been there
};

class SimNames {
 public:
  SimNode find(const std::string& path) const;  // as seen

  // Each throws SystemError, naming `action` and the path, when the tree does not allow it.
  void check_can_add(const std::string& path, std::string_view action);
  void check_can_rename(const std::string& from, const std::string& to);
  void check_can_remove(const std::string& path) const;

  // To be called when the above has not thrown.
  void add(const std::string& path, const SimNode& node);
  void rename(const std::string& from, const std::string& to);
  void remove(const std::string& path);
  void sync(const std::shared_ptr<SimDirectory>& directory);
  // After a power cut: keeps what the seed says of the changes not synced.
  void settle(std::uint64_t seed);

  // Calls visit(inode) for every file as seen.
  template <typename Visit>
  void for_each_file(Visit&& visit) const {
    for_each_file_in(*root_, visit);
  }

 private:
  struct Place {
    std::shared_ptr<SimDirectory> directory;
    std::string name;
  };
  struct Edit {
    Place place;
    SimNode node;  // empty: the name goes
  };
  using Change = std::vector<Edit>;  // one operation: all of it or nothing

  static std::shared_ptr<SimDirectory> taken_for_granted();
  Place place_of(const std::string& path, std::string_view action);
  void make(Change change);
  void make_durable(const Change& change);

  template <typename Visit>
  static void for_each_file_in(const SimDirectory& directory, Visit& visit) {
    for (const auto& [name, node] : directory.seen) {
      if (node.file != nullptr) visit(*node.file);
      if (node.directory != nullptr) for_each_file_in(*node.directory, visit);
    }
  }

  const std::shared_ptr<SimDirectory> root_ = taken_for_granted();
  std::set<std::string> decided_;  // paths that somebody made a directory or removed
  std::vector<Change> pending_;
  std::uint64_t num_cuts_ = 0;
};

}  // namespace strata
