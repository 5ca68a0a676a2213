#include "io/sim/sim_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "strata/core/error.hpp"
#include "strata/core/philox.hpp"

namespace strata {
namespace {

constexpr std::uint64_t names_stream = 1ull << 62;  // of random numbers; files have 0, 1, 2 ...

std::vector<std::string> parts_of(const std::string& path) {
  const auto normal = std::filesystem::path(path).lexically_normal();
  std::vector<std::string> parts;
  if (!normal.is_absolute()) parts.emplace_back(".");
  for (const auto& part : normal.relative_path()) {
    if (!part.empty() && part != ".") parts.push_back(part.string());
  }
  return parts;
}

std::string key_of(const std::string& path) {
  std::string key;
  for (const std::string& part : parts_of(path)) key += "/" + part;
  return key;
}

bool is_within(const std::string& path, const std::string& directory) {
  return key_of(path).starts_with(key_of(directory) + "/");
}

void restart(SimDirectory& directory) {
  directory.seen = directory.durable;
  for (auto& [name, node] : directory.seen) {
    if (node.directory != nullptr) restart(*node.directory);
  }
}

}  // namespace

std::shared_ptr<SimDirectory> SimNames::taken_for_granted() {
  auto directory = std::make_shared<SimDirectory>();
  directory->made = false;
  return directory;
}

SimNode SimNames::find(const std::string& path) const {
  SimNode node = {.file = nullptr, .directory = root_};
  for (const std::string& name : parts_of(path)) {
    if (node.directory == nullptr) return {};
    const auto entry = node.directory->seen.find(name);
    if (entry == node.directory->seen.end()) return {};
    node = SimNode(entry->second);  // a copy first: the old node may hold the entry
  }
  return node;
}

SimNames::Place SimNames::place_of(const std::string& path, std::string_view action) {
  const auto parts = parts_of(path);
  if (parts.empty()) throw SystemError(action, path, EEXIST);
  Place place = {root_, parts.back()};
  std::string key;
  for (const std::string& name : std::span(parts).first(parts.size() - 1)) {
    key += "/" + name;
    if (!place.directory->seen.contains(name)) {
      if (place.directory->made || decided_.contains(key)) throw SystemError(action, path, ENOENT);
      const SimNode granted = {.file = nullptr, .directory = taken_for_granted()};
      place.directory->seen[name] = place.directory->durable[name] = granted;
    }
    place.directory = place.directory->seen[name].directory;
    if (place.directory == nullptr) throw SystemError(action, path, ENOTDIR);
  }
  return place;
}

void SimNames::check_can_add(const std::string& path, std::string_view action) {
  const Place place = place_of(path, action);
  if (place.directory->seen.contains(place.name)) throw SystemError(action, path, EEXIST);
}

void SimNames::check_can_rename(const std::string& from, const std::string& to) {
  const auto refuse = [&](int error_number) {
    throw SystemError("rename", fmt::format("{} to {}", from, to), error_number);
  };
  const SimNode node = find(from), target = find(to);
  if (node.empty()) refuse(ENOENT);
  if (is_within(to, from)) refuse(EINVAL);
  place_of(to, "rename to");
  if (node.file != nullptr && target.directory != nullptr) refuse(EISDIR);
  if (node.directory != nullptr && target.file != nullptr) refuse(ENOTDIR);
  if (target.directory != nullptr && !target.directory->seen.empty()) refuse(ENOTEMPTY);
}

void SimNames::check_can_remove(const std::string& path) const {
  const SimNode node = find(path);
  if (node.empty()) throw SystemError("remove", path, ENOENT);
  if (node.directory == root_) throw SystemError("remove", path, EBUSY);
  if (node.directory == nullptr || node.directory->seen.empty()) return;
  throw SystemError("remove", path, ENOTEMPTY);
}

void SimNames::add(const std::string& path, const SimNode& node) {
  if (node.directory != nullptr) decided_.insert(key_of(path));
  make({{place_of(path, "add"), node}});
}

void SimNames::rename(const std::string& from, const std::string& to) {
  if (key_of(from) == key_of(to)) return;
  const SimNode node = find(from);
  if (node.directory != nullptr) decided_.insert({key_of(from), key_of(to)});
  make({{place_of(from, "rename"), {}}, {place_of(to, "rename to"), node}});
}

void SimNames::remove(const std::string& path) {
  decided_.insert(key_of(path));
  make({{place_of(path, "remove"), {}}});
}

void SimNames::make(Change change) {
  for (const Edit& edit : change) {
    auto& seen = edit.place.directory->seen;
    seen.erase(edit.place.name);
    if (!edit.node.empty()) seen.emplace(edit.place.name, edit.node);
  }
  pending_.push_back(std::move(change));
}

void SimNames::make_durable(const Change& change) {
  for (const Edit& edit : change) {
    auto& durable = edit.place.directory->durable;
    durable.erase(edit.place.name);
    if (!edit.node.empty()) durable.emplace(edit.place.name, edit.node);
  }
}

void SimNames::sync(const std::shared_ptr<SimDirectory>& directory) {
  // A change that reaches into another directory takes the earlier changes there with it.
  std::set<const SimDirectory*> synced = {directory.get()};
  const auto touches = [&](const Edit& edit) {
    return synced.contains(edit.place.directory.get());
  };
  std::vector<Change> kept, done;
  for (auto change = pending_.rbegin(); change != pending_.rend(); ++change) {
    const bool now = std::ranges::any_of(*change, touches);
    for (const Edit& edit : *change) {
      if (now) synced.insert(edit.place.directory.get());
    }
    (now ? done : kept).push_back(std::move(*change));
  }
  for (auto change = done.rbegin(); change != done.rend(); ++change) make_durable(*change);
  pending_.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

void SimNames::settle(std::uint64_t seed) {
  std::map<const SimDirectory*, std::uint64_t> count, left;
  const auto directories_of = [](const Change& change) {
    std::set<const SimDirectory*> directories;
    for (const Edit& edit : change) directories.insert(edit.place.directory.get());
    return directories;
  };
  for (const Change& change : pending_) {
    for (const SimDirectory* directory : directories_of(change)) ++count[directory];
  }
  PhiloxStream random(seed, names_stream + num_cuts_++);
  for (const Change& change : pending_) {
    // By the order of the edits, not of addresses: the draw must repeat.
    for (const Edit& edit : change) {
      const SimDirectory* directory = edit.place.directory.get();
      if (left.contains(directory)) continue;
      left[directory] = seed == 0 ? 0 : random.next_below(count[directory] + 1);
    }
    const auto directories = directories_of(change);
    const bool survives =
        std::ranges::all_of(directories, [&](auto* one) { return left[one] > 0; });
    if (survives) make_durable(change);
    for (const SimDirectory* directory : directories) {
      left[directory] = survives ? left[directory] - 1 : 0;
    }
  }
  pending_.clear();
  restart(*root_);
}

}  // namespace strata
