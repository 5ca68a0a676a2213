#pragma once
// A StoreReport tells people what a store is and whether it is whole. Whatever is wrong becomes a
// line of the report that begins with FAILED; nothing is thrown for it.
//
// Thread contract: one thread.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/store/store_files.hpp"
#include "strata/io/store/shard_store.hpp"

namespace strata {

class StoreReport {
 public:
  StoreReport(IoEngine& engine, std::string path, Verify verify);
  std::string text();

 private:
  void add(const std::string& key, const std::string& value);
  void fail(const std::string& what);
  // Runs something that may throw; false and a FAILED line when it does.
  bool attempt(const std::function<void()>& action);

  void add_kind(const StoreDescription& store);
  void add_owner();
  void add_unfinished();
  void check_parts(const PartText& first);
  bool check_part_at(const PartText& first, std::size_t drive);
  void add_drives(const StoreDescription& store);
  std::string drive_state(std::size_t drive) const;
  void add_roles(const StoreDescription& store);
  void add_versions(const Manifests& manifests);
  void add_versioned(const PartText& first);
  void check_bytes(const StoreDescription& store, const Manifest& manifest);

  IoEngine& engine_;
  const FileSystem& files_;
  const std::string path_;
  const Verify verify_;
  std::string text_;
  std::vector<std::string> paths_;  // of the parts
  std::vector<FileId> tiles_;       // those that could be opened
};

}  // namespace strata
