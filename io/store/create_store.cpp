// ShardStore::create(). A versioned store is made under a marker, `unfinished`, in each part, which
// goes last, and from the first part first: a crash in between leaves either a store or parts that
// say that they are none, which the next create() of that name takes away.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "io/store/checksum.hpp"
#include "io/store/dead_stores.hpp"
#include "io/store/drive_check.hpp"
#include "io/store/drive_probe.hpp"
#include "io/store/drive_store.hpp"
#include "io/store/store_json.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr int names_tried_max = 1000;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

class StoreMaker {
 public:
  StoreMaker(IoEngine& engine, const StoreSpec& spec, const StoreOptions& options)
      : engine_(engine),
        files_(engine.file_system()),
        spec_(spec),
        store_(describe_store(spec, options.checksums)) {
    check_store_options(options, store_.checksums);
  }

  StoreState make() {
    check_kind();
    for (const std::string& directory : spec_.directories) check_store_directory(files_, directory);
    reclaim();
    make_parts();
    lay_out(store_, alignment());
    for (std::size_t i = 0; i < parts_.size(); ++i) reserve(i);
    Manifest manifest = first_manifest();
    store_.kind == StoreKind::versioned ? write_durably(manifest) : write_descriptions();
    return {std::move(store_), std::move(parts_), std::move(manifest), 0};
  }

 private:
  void check_kind() const {
    if (store_.kind == StoreKind::scratch) return;
    check_store_name(store_.name);
    if (store_.drives.empty()) throw ConfigError("a versioned store needs a directory");
  }

  void reclaim() {
    for (const std::string& directory : spec_.directories) {
      const DeadScratch dead = reclaim(directory);
      notes_.push_back(dead.num_stores == 0
                           ? ""
                           : fmt::format("; removed {} scratch files of dead runs ({})",
                                         dead.num_stores, format_bytes(dead.bytes)));
    }
  }

  DeadScratch reclaim(const std::string& directory) {
    try {
      return remove_dead_scratch(files_, directory);
    } catch (const SystemError& error) {
      rethrow_as_config_error(error, directory);
    }
  }

  // Another run that looks for dead scratch may take a part away before it is locked.
  void make_parts() {
    for (int i = 0; i < names_tried_max; ++i) {
      if (try_make_parts()) return;
      parts_.clear();
      if (store_.kind == StoreKind::scratch)
        store_.name = scratch_name(fmt::format("{}-{}", store_.id.substr(0, 8), i));
    }
    throw Error(fmt::format("{} was removed by somebody else while it was being made",
                            store_.part_path(0)));
  }

  bool try_make_parts() {
    for (std::size_t i = 0; i < store_.drives.size(); ++i) {
      auto part = try_make_part(i);
      if (!part) return false;
      part->note(notes_[i]);
      parts_.push_back(std::move(*part));
    }
    return true;
  }

  std::optional<StorePart> try_make_part(std::size_t drive) {
    const std::string path = store_.part_path(drive);
    if (store_.kind == StoreKind::versioned) remove_unfinished(path);
    try {
      return StorePart::make(engine_, path, store_.kind);
    } catch (const SystemError& error) {
      if (error.error_number() == EEXIST) refuse_existing(path);
      rethrow_as_config_error(error, spec_.directories[drive]);
    }
  }

  void remove_unfinished(const std::string& path) {
    if (!files_.is_directory(path) || !is_unfinished(path)) return;
    const auto lock = try_lock_part(files_, path);
    if (lock != nullptr && is_unfinished(path)) remove_part(files_, path);
  }

  bool is_unfinished(const std::string& path) const {
    if (!is_ours_alone(files_, path)) return false;
    if (files_.exists(part_file(path, PartFiles::unfinished))) return true;
    const auto names = files_.list(path);
    return names.empty() || (names.size() == 1 && "/" + names[0] == PartFiles::lock);
  }

  [[noreturn]] void refuse_existing(const std::string& path) const {
    throw ConfigError(fmt::format(
        "there is something named {} already, perhaps a store or one that is being made: open it, "
        "choose another name, or look at it with 'strata inspect' and remove it",
        path));
  }

  std::uint64_t alignment() const {
    std::uint64_t alignment = store_alignment_min;
    for (const StorePart& part : parts_)
      alignment = std::max(alignment, engine_.info(part.tiles()).alignment);
    if (alignment > store_alignment_max)
      throw ConfigError(
          fmt::format("a drive wants transfers aligned to {} bytes; at most {} are "
                      "supported",
                      alignment, store_alignment_max));
    return alignment;
  }

  void reserve(std::size_t drive) {
    const std::uint64_t bytes = store_.drives[drive].bytes;
    check_drive_space(files_, spec_.directories[drive], bytes);
    try {
      engine_.preallocate(parts_[drive].tiles(), bytes);
    } catch (const SystemError& error) {
      rethrow_as_config_error(error, spec_.directories[drive]);
    }
    probe_drive(engine_, parts_[drive].tiles(), store_.alignment, bytes);
  }

  Manifest first_manifest() const {
    Manifest manifest;
    if (store_.kind == StoreKind::versioned)
      manifest.description_checksum = checksum(bytes_of(store_json(store_, 0)));
    manifest.tiles.resize(store_.tiles.size());
    return manifest;
  }

  void write_descriptions() {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      files_.write_file(parts_[i].file(PartFiles::description), bytes_of(store_json(store_, i)));
  }

  void write_durably(const Manifest& manifest) {
    for (std::size_t i = 0; i < parts_.size(); ++i) fill(i);
    for (const std::string_view name : PartFiles::manifests)
      replace_file(files_, parts_[0].file(name), parts_[0].file(PartFiles::manifest_new),
                   encode(manifest));
    for (const StorePart& part : parts_) files_.sync_directory(part.path());
    // From here on it may be a store, whatever fails.
    for (StorePart& part : parts_) part.keep();
    for (const StorePart& part : parts_) unmark(part);
  }

  void fill(std::size_t drive) {
    engine_.sync(parts_[drive].tiles());
    replace_file(files_, parts_[drive].file(PartFiles::description),
                 parts_[drive].file(PartFiles::description_new),
                 bytes_of(store_json(store_, drive)));
    files_.sync_directory(store_.drives[drive].directory);
  }

  void unmark(const StorePart& part) {
    files_.remove(part.file(PartFiles::unfinished));
    files_.sync_directory(part.path());
  }

  IoEngine& engine_;
  FileSystem& files_;
  const StoreSpec& spec_;
  StoreDescription store_;
  std::vector<std::string> notes_;  // by drive
  std::vector<StorePart> parts_;
};

}  // namespace

std::unique_ptr<ShardStore> ShardStore::create(IoEngine& engine, const StoreSpec& spec,
                                               const StoreOptions& options) {
  return std::make_unique<DriveStore>(engine, StoreMaker(engine, spec, options).make(), options);
}

}  // namespace strata
