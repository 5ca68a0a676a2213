// versioned_state.json: JSON in UTF-8 that ends in a checksum of itself
// (docs/design/checkpoints.md).

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "io/store/json_seal.hpp"
#include "io/store/lock_holder.hpp"
#include "io/store/named_stores.hpp"
#include "io/store/store_description.hpp"
#include "io/store/store_json_reader.hpp"
#include "io/store/store_part.hpp"
#include "strata/core/error.hpp"
#include "strata/train/durable_state.hpp"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view record_format = "strata versioned state";
constexpr std::uint64_t format_version = 1, world_max = 1 << 20, record_bytes_max = 1 << 20;
constexpr std::size_t stores_max = 64;

std::string record_path(const std::string& output_dir) {
  return output_dir + "/versioned_state.json";
}

Json entry(const std::string& what, const StateStores& stores) {
  Json directories = Json::array();
  for (const std::string& directory : stores.directories)
    directories.push_back({{"directory", directory}});
  return {{"what", what},
          {"id", stores.id},
          {"ranks", stores.world},
          {"name", stores.prefix() + "*"},
          {"drives", directories}};
}

std::string text_of(const StateRecord& record) {
  Json stores = Json::array();
  const auto add = [&](const std::string& what, const StateStores& one) {
    if (!one.id.empty()) stores.push_back(entry(what, one));
  };
  add("current", record.current);
  add("next", record.next);
  for (const StateStores& one : record.others) add("removed", one);
  const Json json = {
      {"format", record_format}, {"format_version", format_version}, {"stores", stores}};
  std::string text = json.dump(1);
  text.resize(text.size() - 2);  // the end of the object
  return with_json_seal(std::move(text));
}

bool is_id(const std::string& text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

StateStores stores_of(const StoreJsonReader& json) {
  StateStores stores;
  stores.id = json.text("id");
  if (!is_id(stores.id)) json.fail("the id is not 16 hex digits");
  stores.world = static_cast<int>(json.number("ranks", 1, world_max));
  for (const StoreJsonReader& drive : json.rows("drives", store_drives_max))
    stores.directories.push_back(drive.text("directory"));
  if (stores.directories.empty()) json.fail("it is on no drive");
  return stores;
}

StateRecord record_of(std::string_view text, const std::string& path) {
  const StoreJsonReader json = StoreJsonReader::parse(text, path);
  if (json.text("format") != record_format) json.fail("it does not tell of a run's state");
  if (const auto version = json.number("format_version", 0, ~0u); version != format_version)
    json.fail(fmt::format("its format is version {}; this program knows version {}", version,
                          format_version));
  if (!has_json_seal(text)) json.fail("it is damaged: its checksum does not match its contents");
  StateRecord record;
  for (const StoreJsonReader& row : json.rows("stores", stores_max)) {
    const std::string what = row.text("what");
    if (what == "current")
      record.current = stores_of(row);
    else if (what == "next")
      record.next = stores_of(row);
    else
      record.others.push_back(stores_of(row));
  }
  if (text_of(record) != text) json.fail("it is not as Strata writes it");
  return record;
}

bool is_empty(const StateRecord& record) {
  return record.current.id.empty() && record.next.id.empty() && record.others.empty();
}

// One that could not be read again would lock the state away.
void check_count(const StateRecord& record) {
  if (record.others.size() + 2 <= stores_max) return;
  const StateStores& first = record.others.front();
  throw ConfigError(fmt::format(
      "{} versioned stores that hold nothing any more could not be removed from the drives, the "
      "first {}* in {}: see why (rights, a drive that fails), or remove them by hand",
      record.others.size(), first.prefix(), first.drives()));
}

}  // namespace

std::string StateStores::prefix() const { return fmt::format("strata-state-{}-rank", id); }
std::string StateStores::name(int rank) const { return prefix() + std::to_string(rank); }
std::string StateStores::drives() const {
  std::string list;
  for (const std::string& directory : directories) list += (list.empty() ? "" : ", ") + directory;
  return list;
}
std::string StateStores::path(int rank) const { return directories.front() + "/" + name(rank); }

StateRecord read_state_record(const FileSystem& files, const std::string& output_dir) {
  const std::string path = record_path(output_dir);
  if (!files.exists(path)) return {};
  const auto bytes = files.read_file(path, record_bytes_max);
  return record_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

void write_state_record(FileSystem& files, const std::string& output_dir,
                        const StateRecord& record) {
  const std::string path = record_path(output_dir);
  check_count(record);
  if (!is_empty(record)) {
    const std::string text = text_of(record);
    replace_file(files, path, path + ".tmp", std::as_bytes(std::span(text)));
  } else if (files.exists(path)) {
    files.remove(path);
  }
  // The folder may be as new as the record.
  files.sync_directory(output_dir);
  files.sync_directory(std::filesystem::absolute(output_dir).lexically_normal().parent_path());
}

std::uint64_t bytes_of_stores(const FileSystem& files, const StateStores& stores) {
  std::uint64_t bytes = 0;
  for (const std::string& directory : stores.directories)
    bytes += named_store_bytes(files, directory, stores.prefix());
  return bytes;
}

void check_unused(const StateStores& stores) {
  const LockHolder owner = lock_holder(part_file(stores.path(0), PartFiles::lock));
  if (owner.holder != Holder::somebody) return;
  throw ConfigError(
      fmt::format("{} is in use by process {}, which changes it all the time: wait for its end",
                  stores.path(0), owner.process));
}

bool remove_stores(FileSystem& files, const StateStores& stores) {
  bool all = true;
  for (const std::string& directory : stores.directories)
    all &= remove_named_stores(files, directory, stores.prefix());
  return all;
}

std::uint64_t durable_bytes_in(const RunConfig& config, const std::string& directory) {
  const FileSystem& files = posix_file_system();
  const StateStores stores = read_state_record(files, config.output_dir.string()).current;
  return stores.id.empty() ? 0 : named_store_bytes(files, directory, stores.prefix());
}

}  // namespace strata
