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
  StoreOpener(IoEngine& engine, const std::string& path, const StoreOptions& options)
      : engine_(engine), files_(engine.file_system()), path_(path), options_(options) {
    check_store_options(options, Checksums::on);
  }

  StoreState open() {
    check_is_made();
    std::vector<StorePart> parts;
    parts.push_back(StorePart::open(engine_, path_));
    make_names_durable();
    PartText first = read_first();
    open_others(first, parts);
    Manifest manifest = read_manifest(files_, first, path_);
    for (std::size_t i = 0; i < parts.size(); ++i)
      check_tiles_file(engine_, parts[i].tiles(), first.part.store, i);
    if (options_.verify == Verify::reads) verify(parts, first.part.store, manifest);
    return {std::move(first.part.store), std::move(parts), std::move(manifest)};
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
};

}  // namespace

std::unique_ptr<ShardStore> ShardStore::open(IoEngine& engine, const std::string& path,
                                             const StoreOptions& options) {
  return std::make_unique<DriveStore>(engine, StoreOpener(engine, path, options).open(), options);
}

}  // namespace strata
