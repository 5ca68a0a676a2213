// ShardStore::open(): everything is looked at before anything is believed.

#include <fmt/format.h>

#include <utility>

#include "io/store/drive_store.hpp"
#include "io/store/store_files.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

class StoreOpener {
 public:
  StoreOpener(IoEngine& engine, const std::string& path, const StoreOptions& options,
              std::optional<std::uint64_t> version)
      : engine_(engine),
        files_(engine.file_system()),
        path_(path),
        options_(options),
        version_(version) {
    check_store_options(options, Checksums::on);
  }

  StoreState open() {
    check_is_made();
    std::vector<StorePart> parts;
    parts.push_back(StorePart::open(engine_, path_));
    make_names_durable();
    PartText first = read_first();
    open_others(first, parts);
    Manifests manifests = read_manifests(files_, first, path_);
    choose(manifests);
    for (std::size_t i = 0; i < parts.size(); ++i)
      check_tiles_file(engine_, parts[i].tiles(), first.part.store, i);
    if (options_.verify != Verify::off) verify(parts, first.part.store, manifests.last);
    if (goes_back_) forget_the_later(manifests);
    return {std::move(first.part.store), std::move(parts), std::move(manifests.last),
            manifests.slot};
  }

 private:
  void check_is_made() const {
    if (!files_.is_directory(path_))
      throw FormatError(fmt::format("{} is no store: there is no such directory", path_));
    if (files_.exists(part_file(path_, PartFiles::unfinished)))
      throw FormatError(fmt::format(
          "{} is no store yet: whoever made it was interrupted; create it again", path_));
    if (!files_.exists(part_file(path_, PartFiles::description)))
      throw FormatError(fmt::format("{} is no store: it has no store.json", path_));
  }

  // Whoever used it last may have died between a rename and its flush. What is believed here
  // decides which places are free: a power cut must not bring back the manifest that still needs
  // them.
  void make_names_durable() { files_.sync_directory(path_); }

  PartText read_first() const {
    PartText first = read_description(files_, path_);
    const PartDescription& part = first.part;
    const std::string file = part_file(path_, PartFiles::description);
    if (part.store.kind != StoreKind::versioned)
      throw FormatError(
          fmt::format("{}: a scratch store cannot be opened: it has no versions", file));
    if (part.part != 0)
      throw FormatError(fmt::format("{}: it is the part of drive {}; open the first part, {}", file,
                                    part.part, part.store.part_path(0)));
    return first;
  }

  void open_others(const PartText& first, std::vector<StorePart>& parts) {
    const auto paths = part_paths(first.part.store, path_);
    for (std::size_t i = 1; i < paths.size(); ++i) {
      check_part(files_, first, i, paths[i]);
      parts.push_back(StorePart::open(engine_, paths[i]));
      unmark(parts.back());
    }
  }

  // The first part says whether the store is made: whoever made it was cut off just after that.
  void unmark(const StorePart& part) {
    const std::string marker = part.file(PartFiles::unfinished);
    if (!files_.exists(marker)) return;
    files_.remove(marker);
    files_.sync_directory(part.path());
  }

  // `last` becomes the version that is asked for.
  void choose(Manifests& manifests) {
    if (!version_ || manifests.last.version == version_) return;
    if (manifests.before.version != version_)
      throw Error(fmt::format("{} has no version {}: it can be opened at {} and {}", path_,
                              *version_, name(manifests.before), name(manifests.last)));
    std::swap(manifests.last, manifests.before);
    manifests.slot = 1 - manifests.slot;
    goes_back_ = true;
  }
  static std::string name(const Manifest& manifest) {
    return manifest.version ? std::to_string(*manifest.version) : "none";
  }

  // Before anything is written: the next write goes to the places of the later version.
  void forget_the_later(const Manifests& manifests) {
    replace_file(files_, part_file(path_, PartFiles::manifests[1 - manifests.slot]),
                 part_file(path_, PartFiles::manifest_new), encode(manifests.last));
    files_.sync_directory(path_);
  }

  void verify(const std::vector<StorePart>& parts, const StoreDescription& store,
              const Manifest& manifest) {
    std::vector<FileId> tiles;
    for (const StorePart& part : parts) tiles.push_back(part.tiles());
    const TilesCheck check = check_tiles(engine_, tiles, store, manifest);
    if (check.failures.empty()) return;
    throw FormatError(fmt::format("{} of {} tiles of {} are damaged; the first: {}",
                                  check.failures.size(), check.num_read, path_,
                                  check.failures.front()));
  }

  IoEngine& engine_;
  FileSystem& files_;
  const std::string path_;
  const StoreOptions options_;
  const std::optional<std::uint64_t> version_;
  bool goes_back_ = false;
};

}  // namespace

std::unique_ptr<ShardStore> ShardStore::open(IoEngine& engine, const std::string& path,
                                             const StoreOptions& options,
                                             std::optional<std::uint64_t> version) {
  return std::make_unique<DriveStore>(engine, StoreOpener(engine, path, options, version).open(),
                                      options);
}

std::vector<StoreVersion> store_versions(const FileSystem& files, const std::string& path) {
  const auto [last, before, slot] = read_manifests(files, read_description(files, path), path);
  std::vector<StoreVersion> versions;
  if (last.version) versions.push_back({*last.version, last.note});
  if (before.version && before.version != last.version)
    versions.push_back({*before.version, before.note});
  return versions;
}

}  // namespace strata
