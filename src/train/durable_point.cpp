// At which step the stores of all ranks can be opened.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "strata/core/error.hpp"
#include "strata/io/store/shard_store.hpp"
#include "strata/train/durable_state.hpp"
#include "train/durable_note.hpp"

namespace strata {
namespace {

using Versions = std::set<std::uint64_t>;

// What one process finds on its drives, and what it tells the others of it: lines of a rank and a
// version.
struct Found {
  std::map<int, Versions> of_rank;
  std::map<std::uint64_t, std::string> notes;  // by version

  std::string text() const {
    std::string text;
    for (const auto& [rank, versions] : of_rank)
      for (const std::uint64_t version : versions) text += fmt::format("{} {}\n", rank, version);
    return text;
  }
  void add(const std::string& text) {
    std::istringstream lines(text);
    int rank = 0;
    for (std::uint64_t version = 0; lines >> rank >> version;) of_rank[rank].insert(version);
  }
};

Found look_here(const FileSystem& files, const StateStores& stores) {
  Found found;
  for (int rank = 0; rank < stores.world; ++rank) {
    const std::string path = stores.path(rank);
    if (!files.is_directory(path)) continue;
    for (const auto& [version, note] : store_versions(files, path)) {
      found.of_rank[rank].insert(version);
      found.notes[version] = note;
    }
  }
  return found;
}

[[noreturn]] void refuse(const StateStores& stores, const std::string& what) {
  throw Error(fmt::format(
      "the state of this output_dir's run cannot be gone on from: {}. To go on from its newest "
      "checkpoint or to begin again, remove versioned_state.json there, and {}* in {}",
      what, stores.prefix(), stores.drives()));
}

// The newest that the last rank to commit has; no other rank went on before it had.
std::uint64_t common_version(const StateStores& stores, const Found& found) {
  std::uint64_t common = ~std::uint64_t{0};
  for (int rank = 0; rank < stores.world; ++rank) {
    const auto own = found.of_rank.find(rank);
    if (own == found.of_rank.end())
      refuse(stores, fmt::format("{} is missing or has no committed step (is the drive mounted?)",
                                 stores.path(rank)));
    common = std::min(common, *own->second.rbegin());
  }
  for (const auto& [rank, versions] : found.of_rank)
    if (!versions.contains(common))
      refuse(stores, fmt::format("{} has step {}, which another rank does not have",
                                 stores.path(rank), *versions.rbegin()));
  return common;
}

std::string first_of(const std::vector<std::string>& texts) {
  const auto found = std::ranges::find_if(texts, [](const auto& text) { return !text.empty(); });
  return found == texts.end() ? "" : *found;
}

}  // namespace

Exchange alone() {
  return [](const std::string& own) { return std::vector{own}; };
}

std::optional<DurablePoint> find_durable_point(const FileSystem& files, const StateRecord& record,
                                               const Exchange& exchange) {
  const StateStores& stores = record.current;
  if (stores.id.empty()) return std::nullopt;
  Found found;
  std::string damage;
  try {
    found = look_here(files, stores);
  } catch (const Error& error) {
    damage = error.what();
  }
  damage = first_of(exchange(damage));
  if (!damage.empty()) refuse(stores, damage);
  for (const std::string& text : exchange(found.text())) found.add(text);
  DurablePoint point{stores, common_version(stores, found), {}, {}};
  const std::string note = first_of(exchange(found.notes[point.version]));
  const DurableNote kept = parse_durable_note(note, stores.path(0));
  point.note = kept.note;
  point.output_dir = kept.output_dir;
  if (point.note.step != static_cast<std::int64_t>(point.version))
    refuse(stores, fmt::format("version {} of {} tells of step {}", point.version, stores.path(0),
                               point.note.step));
  return point;
}

std::string DurablePoint::describe() const {
  return fmt::format("{}{}", stores.path(0),
                     stores.world == 1 ? "" : fmt::format(" to rank{}", stores.world - 1));
}

}  // namespace strata
