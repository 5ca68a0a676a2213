#include "io/store/store_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "io/store/lock_holder.hpp"
#include "io/store/part_files.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/core/text_table.hpp"

namespace strata {
namespace {

constexpr std::size_t note_shown_max = 200;

// The owner's note may be anything: what is no printable ASCII is shown as a dot.
std::string printable(std::string text) {
  const bool is_long = text.size() > note_shown_max;
  text.resize(std::min(text.size(), note_shown_max));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '.');
  return is_long ? text + " ..." : text;
}

std::string role_of(const std::string& tile_name) {
  return tile_name.substr(0, tile_name.find('/'));
}

std::string indented(const std::string& table) {
  std::string text = "\n  ";
  for (char c : table) text += c == '\n' ? std::string("\n  ") : std::string(1, c);
  text.resize(text.find_last_not_of(" \n") + 1);
  return text + "\n";
}

struct Sum {
  std::uint64_t tiles = 0, bytes = 0;
};

std::vector<std::string> row_of(const std::string& name, const Sum& sum) {
  return {name, std::to_string(sum.tiles), format_bytes(sum.bytes), std::to_string(sum.bytes)};
}

}  // namespace

StoreReport::StoreReport(IoEngine& engine, std::string path, Verify verify)
    : engine_(engine), files_(engine.file_system()), path_(std::move(path)), verify_(verify) {}

std::string StoreReport::text() {
  add("store", path_);
  add_owner();
  add_unfinished();
  std::optional<PartText> first;
  if (!attempt([&] { first = read_description(files_, path_); })) return text_;
  const StoreDescription& store = first->part.store;
  add_kind(store);
  if (first->part.part != 0) {
    add("part", fmt::format("of drive {} of {}; the first part, {}, tells more", first->part.part,
                            store.drives.size(), store.part_path(0)));
    return text_;
  }
  check_parts(*first);
  add_drives(store);
  add_roles(store);
  text_ += "\n";
  if (store.kind == StoreKind::versioned) {
    add_versioned(*first);
  } else if (verify_ == Verify::reads) {
    add("tiles", "a scratch store's checksums, if any, are with its owner: nothing to verify");
  }
  return text_;
}

void StoreReport::add(const std::string& key, const std::string& value) {
  text_ += fmt::format("{:<9}{}\n", key, value);
}

void StoreReport::fail(const std::string& what) { text_ += "FAILED   " + what + "\n"; }

bool StoreReport::attempt(const std::function<void()>& action) {
  try {
    action();
    return true;
  } catch (const std::exception& error) {
    fail(error.what());
    return false;
  }
}

void StoreReport::add_kind(const StoreDescription& store) {
  add("kind", fmt::format("{}, checksums {}", store_kind_name(store.kind),
                          store.checksums == Checksums::on ? "on" : "off"));
  add("id", store.id);
}

void StoreReport::add_owner() {
  const LockHolder owner = lock_holder(part_file(path_, PartFiles::lock));
  switch (owner.holder) {
    case Holder::nobody:
      return add("owner", "none: no process here holds its lock");
    case Holder::unknown:
      return add("owner", "unknown: the kernel does not tell here who holds its lock");
    case Holder::somebody:
      return add("owner", fmt::format("process {}, alive", owner.process));
  }
}

void StoreReport::add_unfinished() {
  if (files_.exists(part_file(path_, PartFiles::unfinished)))
    fail("it is being made, or whoever made it was interrupted");
}

void StoreReport::check_parts(const PartText& first) {
  paths_ = part_paths(first.part.store, path_);
  tiles_.resize(first.part.store.drives.size());
  for (std::size_t i = 0; i < tiles_.size(); ++i) check_part_at(first, i);
}

bool StoreReport::check_part_at(const PartText& first, std::size_t drive) {
  return attempt([&] {
    check_part(files_, first, drive, paths_[drive]);
    const std::string file = part_file(paths_[drive], PartFiles::tiles);
    const FileId tiles = engine_.open(file, OpenMode::read_only, Caching::direct);
    tiles_[drive] = tiles;
    check_tiles_file(engine_, tiles, first.part.store, drive);
  });
}

std::string StoreReport::drive_state(std::size_t drive) const {
  if (!tiles_[drive].valid()) return "damaged or missing";
  const std::string file = part_file(paths_[drive], PartFiles::tiles);
  return format_bytes(files_.allocated_bytes(file)) + " allocated";
}

void StoreReport::add_drives(const StoreDescription& store) {
  TextTable table({{"drive"}, {"path"}, {"bytes", TextTable::Align::right}, {"state"}});
  for (std::size_t i = 0; i < store.drives.size(); ++i)
    table.add_row(
        {std::to_string(i), paths_[i], format_bytes(store.drives[i].bytes), drive_state(i)});
  text_ += indented(table.text());
}

void StoreReport::add_roles(const StoreDescription& store) {
  std::map<std::string, Sum> roles;
  Sum total;
  for (const TileExtent& extent : store.tiles) {
    for (Sum* sum : {&roles[role_of(extent.tile.name)], &total}) {
      ++sum->tiles;
      sum->bytes += extent.tile.bytes;
    }
  }
  TextTable table({{"role"},
                   {"tiles", TextTable::Align::right},
                   {"size", TextTable::Align::right},
                   {"bytes", TextTable::Align::right}});
  for (const auto& [role, sum] : roles) table.add_row(row_of(role, sum));
  table.add_row(row_of("all", total));
  text_ += indented(table.text());
}

void StoreReport::add_versioned(const PartText& first) {
  std::optional<Manifests> manifests;
  if (!attempt([&] { manifests = read_manifests(files_, first, path_); })) return;
  add_versions(*manifests);
  if (verify_ == Verify::reads) attempt([&] { check_bytes(first.part.store, manifests->last); });
}

void StoreReport::add_versions(const Manifests& manifests) {
  const auto& [last, before, slot] = manifests;
  if (!last.version) return add("version", "none committed yet");
  const bool has_two = before.version && before.version != last.version;
  add("version", fmt::format("{}{}", *last.version,
                             has_two ? fmt::format(", and {} before it", *before.version) : ""));
  add("note", last.note.empty() ? "none" : printable(last.note));
}

void StoreReport::check_bytes(const StoreDescription& store, const Manifest& manifest) {
  const TilesCheck check = check_tiles(engine_, tiles_, store, manifest);
  add("tiles", fmt::format("{} read ({}), {} whole, {} damaged, {} never written", check.num_read,
                           format_bytes(check.bytes_read), check.num_read - check.failures.size(),
                           check.failures.size(), check.num_never_written));
  for (const std::string& failure : check.failures) fail(failure);
}

bool is_store(const std::string& path) {
  FileSystem& files = posix_file_system();
  return files.is_directory(path) && files.exists(part_file(path, PartFiles::description));
}

std::string inspect_store(const std::string& path, Verify verify) {
  if (!posix_file_system().is_directory(path))
    throw ConfigError(path + " is no store: there is no such directory");
  const auto engine = make_io_engine("threads", {});
  return StoreReport(*engine, path, verify).text();
}

}  // namespace strata
